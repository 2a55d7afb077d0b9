/**
 * Invalidations in memory that threads share (docs/design.md, "Workers on SQLite"). The writer thread publishes whose cached state a commit
 * made stale before it acknowledges the commit, and every event loop delivers what is new before it uses a cache: one atomic load.
 */

/** A power of two, so that an overflow of the position skips none. */
const CAPACITY = 16_384

/** An event loop that is further behind evicts everyone: its slots may be overwritten meanwhile. */
const MAX_BEHIND = CAPACITY / 2

/** Bytes of a cached id. */
const ID_LENGTH = 36

/** Bytes of the position, which overflows. */
const HEADER_SIZE = 4

/** The first byte of a slot that stands for everyone. */
const EVERYONE = 0

/** A commit that changes more users evicts everyone. */
const MAX_IDS = 1_000

export const newInvalidationBuffer = (): SharedArrayBuffer =>
  new SharedArrayBuffer(HEADER_SIZE + CAPACITY * ID_LENGTH)

const parts = (buffer: SharedArrayBuffer) => ({
  position: new Int32Array(buffer, 0, 1),
  slots: new Uint8Array(buffer, HEADER_SIZE),
})

const startOf = (position: number): number => ((position >>> 0) % CAPACITY) * ID_LENGTH

/** The end of the writer thread, or of the one that has replaced it: one at a time. */
export class InvalidationPublisher {
  readonly #position: Int32Array
  readonly #slots: Uint8Array

  constructor(buffer: SharedArrayBuffer) {
    const { position, slots } = parts(buffer)
    this.#position = position
    this.#slots = slots
  }

  publish(ids: readonly string[]): void {
    if (ids.length > MAX_IDS || ids.some(id => id.length !== ID_LENGTH)) return this.publishEveryone()
    for (const id of ids)
      this.#append(slot => {
        for (let index = 0; index < ID_LENGTH; index += 1) slot[index] = id.charCodeAt(index)
      })
  }

  publishEveryone(): void {
    this.#append(slot => {
      slot[0] = EVERYONE
    })
  }

  /** The atomic store comes last: a thread that loads the new position reads the whole slot. */
  #append(write: (slot: Uint8Array) => void): void {
    const next = (Atomics.load(this.#position, 0) + 1) | 0
    const start = startOf(next)
    write(this.#slots.subarray(start, start + ID_LENGTH))
    Atomics.store(this.#position, 0, next)
  }
}

export interface InvalidationHandler {
  readonly invalidate: (id: string) => void
  readonly invalidateAll: () => void
}

export class InvalidationReceiver {
  readonly #position: Int32Array
  readonly #slots: Uint8Array
  readonly #handler: InvalidationHandler
  #delivered: number

  constructor(buffer: SharedArrayBuffer, handler: InvalidationHandler) {
    const { position, slots } = parts(buffer)
    this.#position = position
    this.#slots = slots
    this.#handler = handler
    this.#delivered = Atomics.load(position, 0)
  }

  deliver(): void {
    const position = Atomics.load(this.#position, 0)
    if (position !== this.#delivered) this.#deliverUntil(position)
  }

  #deliverUntil(position: number): void {
    const ids: string[] = []
    let includesEveryone = false
    const published = Math.min((position - this.#delivered) >>> 0, MAX_BEHIND)
    for (let number = 1; number <= published; number += 1) {
      const start = startOf(this.#delivered + number)
      if (this.#slots[start] === EVERYONE) includesEveryone = true
      else ids.push(String.fromCharCode(...this.#slots.subarray(start, start + ID_LENGTH)))
    }
    const behind = (Atomics.load(this.#position, 0) - this.#delivered) >>> 0
    this.#delivered = position
    if (includesEveryone || behind > MAX_BEHIND) this.#handler.invalidateAll()
    else for (const id of ids) this.#handler.invalidate(id)
  }
}
