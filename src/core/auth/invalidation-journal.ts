/**
 * The ids whose cached state has ended in this process, for verifiers in other services (docs/verifying.md). They ask again and again, and
 * each response lists what has ended since the previous one.
 *
 * A response is only given while this process may use its own caches. So whatever was acknowledged before the question was sent is in it, or in
 * an earlier one: a write that ends access is acknowledged once every process has evicted, or may use its caches no more. A verifier that counts
 * the age of what it keeps from the sending of its last answered question is therefore as current as that age.
 */
import { randomUUID } from 'node:crypto'
import { ServiceError } from '#base/errors'
import type { InvalidationListener } from '#storage/invalidation'
import { CacheValidity } from './cache-validity.ts'

/** Ids that are kept. A verifier that is further behind empties its cache. */
const CAPACITY = 4_096

/** Milliseconds after which a question is answered, also if nothing has ended. */
const HOLD = 400

/** Answers a millisecond for all verifiers together, however often something ends: 1,000 then wait as long as if nothing did. */
const ANSWERS = 2.5

/** Milliseconds from the first id that ends to the answers, at least: so that those of one write are in one answer. */
const GATHERING = 2

/** Processes that a verifier may have asked before: those behind a load balancer. */
export const MAX_CURSORS = 64

/** The most a list of cursors has: an id, a colon, a position and a comma each. */
export const MAX_CURSOR_LENGTH = MAX_CURSORS * 54

export interface EndedState {
  /** Where this process goes on. */
  readonly cursor: string
  readonly ids: readonly string[]
  /** Whether more has ended than the ids tell: what is kept must be forgotten. */
  readonly reset: boolean
}

export interface InvalidationJournalDeps {
  /** Evicts what a committed change has made stale (`Engine.deliverInvalidations`). Called before each answer. */
  readonly deliverInvalidations: () => void
}

export class InvalidationJournal implements InvalidationListener {
  readonly #deps: InvalidationJournalDeps
  readonly #validity = new CacheValidity()
  /** A ring: the id at position `n` has the index `n % CAPACITY`. */
  readonly #ids: string[] = []
  /** What ends the wait of each question. */
  readonly #questions = new Set<() => void>()
  /** Names the positions. Replaced when unknown ids have ended. */
  #instance = randomUUID()
  #position = 0
  #isWaking = false

  constructor(deps: InvalidationJournalDeps) {
    this.#deps = deps
  }

  /**
   * What has ended since the cursor of this process. Waits for 400 ms at most: until something has, and while changes by other processes may
   * arrive late.
   * @param after cursors of this process and of others, separated by commas; empty for the first question.
   * @throws {ServiceError} `storeUnavailable` if they still may.
   */
  async since(after: string): Promise<EndedState> {
    this.#deps.deliverInvalidations()
    if (!this.#validity.isReliable || this.#positionIn(after) === this.#position) await this.#wait()
    this.#deps.deliverInvalidations()
    if (!this.#validity.isReliable) throw new ServiceError('storeUnavailable')
    const from = this.#positionIn(after)
    const cursor = `${this.#instance}:${this.#position}`
    return from === null
      ? { cursor, ids: [], reset: true }
      : { cursor, ids: this.#idsFrom(from), reset: false }
  }

  invalidate(id: string): void {
    this.#ids[this.#position % CAPACITY] = id
    this.#position += 1
    this.#wakeSoon()
  }

  invalidateAll(): void {
    this.#instance = randomUUID()
    this.#position = 0
    this.#wakeSoon()
  }

  setFeedConnected(isConnected: boolean): void {
    if (this.#validity.setFeedConnected(isConnected)) this.invalidateAll()
  }

  setFeedLate(isLate: boolean): void {
    this.#validity.setFeedLate(isLate)
    if (!isLate) this.#wakeSoon()
  }

  closed(): void {
    this.setFeedConnected(false)
    this.#wake()
  }

  /** `null` if no cursor is of this process, or the ids since are not kept. */
  #positionIn(after: string): number | null {
    const prefix = `${this.#instance}:`
    const start = after.indexOf(prefix)
    if (start === -1) return null
    const position = Number.parseInt(after.slice(start + prefix.length), 10)
    return position <= this.#position && this.#position - position <= CAPACITY ? position : null
  }

  #idsFrom(position: number): readonly string[] {
    const ids = new Set<string>()
    for (let at = position; at < this.#position; at += 1) ids.add(this.#ids[at % CAPACITY] ?? '')
    return [...ids]
  }

  #wait(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const end = (): void => {
      clearTimeout(timer)
      this.#questions.delete(end)
      resolve()
    }
    const timer = setTimeout(end, HOLD)
    this.#questions.add(end)
    return promise
  }

  #wakeSoon(): void {
    if (this.#isWaking || this.#questions.size === 0) return
    this.#isWaking = true
    const delay = Math.min(Math.max(this.#questions.size / ANSWERS, GATHERING), HOLD)
    setTimeout(() => this.#wake(), delay).unref()
  }

  #wake(): void {
    this.#isWaking = false
    for (const end of this.#questions) end()
  }
}
