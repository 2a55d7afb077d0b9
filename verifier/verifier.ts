/**
 * Verifies access tokens and API keys of Gatehouse in another service, at memory speed, with revocations within a second (docs/verifying.md
 * has the proof). The first use of a token asks introspection. Its result is kept while a long poll tells which users and keys have changed,
 * and used only within a second of the *sending* of the last poll that was answered, by the monotonic clock: so the bound holds also while the
 * service, the network or this process is frozen.
 */
import type { Identity, VerifierOptions, VerifierStatistics } from './interface.ts'
import { BackOff, Connection, VerifierError } from './requests.ts'

/** Milliseconds, as the constants that follow. */
const STALENESS = 1_000
/** Results are asked for again after this time, because sessions also end without use. */
const MAX_AGE = 60_000
/** A user who was named so lately may still have a result from before: it is not kept. */
const NAMED = 2_000
const POLL_TIMEOUT = 2_000
/** Between the beginnings of two polls: in a busy service something ends all the time. */
const POLL_INTERVAL = 50

/** RFC 6750 §2.1. */
const TOKEN = /^[\w.~+/=-]{1,8192}$/
const MAX_WAITING = 10_000
/** Tokens and characters of one request. */
const BATCH = 100
const BATCH_LENGTH = 100_000
/** Processes of the service whose cursors are remembered. */
const MAX_CURSORS = 64

interface Kept {
  readonly token: string
  readonly ids: readonly string[]
  /** Resolved, so that a hit creates no promise. */
  readonly identity: Promise<Identity>
  /** By the monotonic clock. */
  readonly until: number
  isUsed: boolean
}

interface Waiting {
  readonly token: string
  readonly resolve: (identity: Identity | null) => void
  readonly reject: (error: VerifierError) => void
}

interface Invalidations {
  readonly cursor: string
  readonly ids: readonly string[]
  readonly reset: boolean
}

const INVALID = Promise.resolve(null)

const sleep = (milliseconds: number): Promise<void> =>
  new Promise(resolve => setTimeout(resolve, milliseconds).unref())

export class Verifier {
  readonly #polls: Connection
  readonly #introspections: Connection
  readonly #options: VerifierOptions
  readonly #maxTokens: number
  readonly #staleness: number
  readonly #kept = new Map<string, Kept>()
  readonly #byId = new Map<string, Set<Kept>>()
  /** Single flight: one request for each token. */
  readonly #flights = new Map<string, Promise<Identity | null>>()
  #waiting: Waiting[] = []
  /** When each id was named lately; and when all were. */
  readonly #namedAt = new Map<string, number>()
  #resetAt = Number.NEGATIVE_INFINITY
  /** When the last poll that was answered was sent. */
  #freshAt = Number.NEGATIVE_INFINITY
  /** By process of the service. */
  readonly #cursors = new Map<string, string>()
  readonly #pollBackOff = new BackOff()
  readonly #askBackOff = new BackOff()
  #isAsking = false
  #isClosed = false
  #hits = 0
  #misses = 0
  #requests = 0
  #failures = 0

  constructor(options: VerifierOptions) {
    this.#options = options
    this.#polls = new Connection(options.baseUrl, options.adminKey)
    this.#introspections = new Connection(options.baseUrl, options.adminKey)
    this.#maxTokens = options.maxTokens ?? 10_000
    this.#staleness = Math.max(options.maxStaleness ?? STALENESS, STALENESS)
    void this.#poll()
  }

  /**
   * Who presents a token; `null` if it is not valid.
   * @throws {VerifierError} if that cannot be found out now: refuse the request with 503.
   */
  verify(token: string): Promise<Identity | null> {
    const kept = this.#kept.get(token)
    if (kept !== undefined) {
      const now = performance.now()
      if (now - this.#freshAt < this.#staleness && now < kept.until) {
        this.#hits += 1
        kept.isUsed = true
        return kept.identity
      }
    }
    // Callers without types may pass on a header field that is absent.
    if (typeof token !== 'string' || !TOKEN.test(token)) return INVALID
    this.#misses += 1
    return this.#flights.get(token) ?? this.#ask(token)
  }

  get statistics(): VerifierStatistics {
    const [hits, misses, requests, failures] = [this.#hits, this.#misses, this.#requests, this.#failures]
    return { hits, misses, requests, failures, kept: this.#kept.size, age: performance.now() - this.#freshAt }
  }

  /** Ends the polls. Tokens are not verified any more. */
  close(): void {
    this.#isClosed = true
    this.#forgetAll()
    this.#polls.close()
    this.#introspections.close()
  }

  #ask(token: string): Promise<Identity | null> {
    const error = this.#refusal()
    if (error !== null) return Promise.reject(error)
    const flight = new Promise<Identity | null>((resolve, reject) => {
      this.#waiting.push({ token, resolve, reject })
    }).finally(() => this.#flights.delete(token))
    this.#flights.set(token, flight)
    if (!this.#isAsking) {
      this.#isAsking = true
      // With the tokens of all requests that are being processed.
      setImmediate(() => this.#askAll())
    }
    return flight
  }

  /** Why nothing is asked now. */
  #refusal(): VerifierError | null {
    if (this.#isClosed) return new VerifierError('The verifier is closed')
    if (this.#waiting.length >= MAX_WAITING) return new VerifierError('Too many tokens wait to be verified')
    return this.#askBackOff.wait > 0 ? this.#askBackOff.error : null
  }

  async #askAll(): Promise<void> {
    while (this.#waiting.length > 0) await this.#askFor(this.#takeBatch())
    this.#isAsking = false
  }

  #takeBatch(): readonly Waiting[] {
    let [count, length] = [0, 0]
    for (const { token } of this.#waiting) {
      length += token.length
      if (count === BATCH || length > BATCH_LENGTH) break
      count += 1
    }
    return this.#waiting.splice(0, count)
  }

  async #askFor(batch: readonly Waiting[]): Promise<void> {
    const sentAt = performance.now()
    this.#requests += 1
    try {
      const tokens = batch.map(({ token }) => token)
      const { results } = await this.#introspections.request<{ results: (Identity | { active: false })[] }>(
        '/admin/introspect',
        STALENESS,
        { tokens },
      )
      if (performance.now() - sentAt >= STALENESS) throw new VerifierError('Gatehouse responded too late')
      this.#askBackOff.succeeded()
      for (const [index, { token, resolve }] of batch.entries()) {
        const result = results[index]
        if (result?.active === true) this.#keep(token, Object.freeze(result), sentAt)
        resolve(result?.active === true ? result : null)
      }
    } catch (error) {
      const failure = this.#failed(error, this.#askBackOff)
      for (const { reject } of batch.concat(this.#waiting.splice(0))) reject(failure)
    }
  }

  #failed(error: unknown, backOff: BackOff): VerifierError {
    const failure = error instanceof VerifierError ? error : new VerifierError(String(error))
    const isKnown = failure.isRefusal && this.#askBackOff.error?.status === failure.status
    backOff.failed(failure)
    this.#failures += 1
    if (!this.#isClosed && !isKnown) this.#options.onError?.(failure)
    return failure
  }

  #keep(token: string, identity: Identity, sentAt: number): void {
    const ids = [identity.sub, identity.sid, identity.jti, identity.client_id].filter(id => id !== undefined)
    const since = Math.max(this.#resetAt, ...ids.map(id => this.#namedAt.get(id) ?? Number.NEGATIVE_INFINITY))
    if (since > sentAt - NAMED) return
    const lifetime = identity.exp === undefined ? MAX_AGE : identity.exp * 1_000 - Date.now()
    const former = this.#kept.get(token)
    if (former !== undefined) this.#forget(former)
    while (this.#kept.size >= this.#maxTokens) this.#evictOne()
    const until = sentAt + Math.min(lifetime, MAX_AGE)
    const kept: Kept = { token, ids, identity: Promise.resolve(identity), until, isUsed: false }
    this.#kept.set(token, kept)
    for (const id of ids) {
      const others = this.#byId.get(id)
      if (others === undefined) this.#byId.set(id, new Set([kept]))
      else others.add(kept)
    }
  }

  /** The oldest, unless it was used since it was last looked at. */
  #evictOne(): void {
    for (const kept of this.#kept.values()) {
      if (!kept.isUsed) return this.#forget(kept)
      kept.isUsed = false
      this.#kept.delete(kept.token)
      this.#kept.set(kept.token, kept)
    }
  }

  #forget(kept: Kept): void {
    this.#kept.delete(kept.token)
    for (const id of kept.ids) {
      const others = this.#byId.get(id)
      others?.delete(kept)
      if (others?.size === 0) this.#byId.delete(id)
    }
  }

  #forgetAll(): void {
    this.#kept.clear()
    this.#byId.clear()
  }

  async #poll(): Promise<void> {
    while (!this.#isClosed) {
      const sentAt = performance.now()
      try {
        const path = `/admin/invalidations?after=${[...this.#cursors.values()].join()}`
        this.#apply(await this.#polls.request<Invalidations>(path, POLL_TIMEOUT))
        this.#freshAt = sentAt
        this.#pollBackOff.succeeded()
      } catch (error) {
        this.#failed(error, this.#pollBackOff)
      }
      await sleep(Math.max(this.#pollBackOff.wait, POLL_INTERVAL - (performance.now() - sentAt)))
    }
  }

  #apply({ cursor, ids, reset }: Invalidations): void {
    const now = performance.now()
    const [process = ''] = cursor.split(':')
    this.#cursors.delete(process)
    this.#cursors.set(process, cursor)
    for (const oldest of this.#cursors.keys()) {
      if (this.#cursors.size <= MAX_CURSORS) break
      this.#cursors.delete(oldest)
    }
    for (const [id, namedAt] of this.#namedAt) {
      if (now - namedAt < NAMED + STALENESS) break
      this.#namedAt.delete(id)
    }
    for (const id of ids) {
      // The order of the map is that of the times.
      this.#namedAt.delete(id)
      this.#namedAt.set(id, now)
      for (const kept of this.#byId.get(id) ?? []) this.#forget(kept)
    }
    if (!reset) return
    this.#resetAt = now
    this.#forgetAll()
  }
}

/** Begins to poll. `close()` ends it. */
export const createVerifier = (options: VerifierOptions): Verifier => new Verifier(options)
