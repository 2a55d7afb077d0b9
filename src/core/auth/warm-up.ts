/**
 * Fills the token cache before requests do (docs/design.md, "Load tests"). A cached token is found by its text, which the service does not
 * store. But a signature of HS256 or EdDSA follows from its content, so the token of a session can be issued again.
 */
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import type { SessionStore } from '../store/store.ts'
import type { AccessTokens } from './access-tokens.ts'
import type { Authenticator } from './authenticator.ts'

/** Sessions of one query. On SQLite it blocks the event loop for about a millisecond. */
const PAGE = 200

/** Milliseconds for which the event loop is blocked at most, except for one query or signature. */
const SLICE_TIME = 1

/** Milliseconds after which a warm-up ends with what is cached by then: a start must not wait for a slow database. */
const TIME_LIMIT = 30_000

/** Milliseconds between two looks at whether tokens can be cached. */
const RETRY_DELAY = 50

export interface WarmUpResult {
  /** Tokens that are cached now, of the sessions that were opened last. */
  readonly loaded: number
  /** Tokens among `loaded` that were not cached before. */
  readonly added: number
  /** Tokens that fit into the cache, if their users have no metadata. */
  readonly capacity: number
  readonly seconds: number
}

export interface WarmUpDeps {
  readonly sessions: Pick<SessionStore, 'findNewest'>
  /** Resolves when the store works. A store that has just been opened has then reported that earlier changes are unknown. */
  readonly ping: () => Promise<void>
  readonly authenticator: Authenticator
  readonly tokens: Pick<AccessTokens, 'isDeterministic'>
  readonly log: { info(details: object, message: string): void; warn(details: object, message: string): void }
}

/** A warm-up that is running. */
interface Progress {
  readonly limit: number
  /** Milliseconds of `performance.now()`. */
  readonly endsAt: number
  loaded: number
  added: number
  isFull: boolean
}

export class WarmUp {
  readonly #deps: WarmUpDeps
  #running: Promise<WarmUpResult> | null = null
  #starting: Promise<void> | null = null
  #isClosed = false

  constructor(deps: WarmUpDeps) {
    this.#deps = deps
  }

  /** Whether the warm-up of the start is running: the instance is not ready. */
  get isStarting(): boolean {
    return this.#starting !== null
  }

  /** Warms up at the start. Never throws: without its cache the service is slower, but works. */
  start(): void {
    const { log } = this.#deps
    this.#starting = this.run()
      .then(
        ({ loaded, seconds }) => log.info({ loaded, seconds }, 'cached the tokens of the newest sessions'),
        err => log.warn({ err }, 'the token cache could not be filled: requests fill it'),
      )
      .finally(() => {
        this.#starting = null
      })
  }

  /**
   * Caches the tokens of the enabled users' sessions that were opened last. It evicts no other token, and notes no request. One at a
   * time: a parallel call gets the result of the one that is running.
   * @param limit the number of tokens; by default as many as there is room for.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  run(limit = Number.POSITIVE_INFINITY): Promise<WarmUpResult> {
    this.#running ??= this.#run(limit).finally(() => {
      this.#running = null
    })
    return this.#running
  }

  /** Ends a running warm-up. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running?.catch(() => undefined)
    await this.#starting
  }

  async #run(limit: number): Promise<WarmUpResult> {
    const startedAt = performance.now()
    const progress = { limit, endsAt: startedAt + TIME_LIMIT, loaded: 0, added: 0, isFull: false }
    if (this.#deps.tokens.isDeterministic) {
      await this.#deps.ping()
      await this.#loadPages(progress)
    }
    const { loaded, added } = progress
    const { capacity } = this.#deps.authenticator.cacheStatistics
    return { loaded, added, capacity, seconds: Math.round(performance.now() - startedAt) / 1_000 }
  }

  #isOver({ limit, endsAt, loaded, isFull }: Progress): boolean {
    return this.#isClosed || isFull || loaded >= limit || performance.now() >= endsAt
  }

  async #loadPages(progress: Progress): Promise<void> {
    let before: string | null = null
    while (!this.#isOver(progress)) {
      if (!this.#deps.authenticator.isCaching) {
        await delay(RETRY_DELAY)
        continue
      }
      const last: string | null = await this.#loadPage(before, progress)
      if (last === null) return
      before = last
      await nextTurn()
    }
  }

  /** @returns the id of the last session; `null` if there are no more. */
  async #loadPage(before: string | null, progress: Progress): Promise<string | null> {
    const { authenticator, sessions } = this.#deps
    // Open until the last session of the page is cached: a change in between may not be in the result.
    const watch = authenticator.watchChanges()
    try {
      const page = await sessions.findNewest(before, PAGE)
      let sliceEnd = performance.now() + SLICE_TIME
      for (const found of page) {
        if (this.#isOver(progress)) break
        this.#note(authenticator.preload(found, watch), progress)
        if (performance.now() < sliceEnd) continue
        await nextTurn()
        sliceEnd = performance.now() + SLICE_TIME
      }
      return page.at(-1)?.session.id ?? null
    } finally {
      watch.close()
    }
  }

  #note(outcome: ReturnType<Authenticator['preload']>, progress: Progress): void {
    if (outcome === 'full') progress.isFull = true
    if (outcome === 'added') progress.added += 1
    if (outcome === 'added' || outcome === 'cached') progress.loaded += 1
  }
}
