/** Milliseconds in which one of a kind is enough. */
const INTERVAL = 60_000

/** Kinds that are told apart at a time. */
const MAX_KEYS = 1_000

interface Window {
  readonly begin: number
  passedOver: number
}

/** Lets through one of each kind a minute, in bounded memory. */
export class Sampler {
  readonly #clock: () => number
  /** In the order in which they began. */
  readonly #windows = new Map<string, Window>()

  constructor(clock: () => number) {
    this.#clock = clock
  }

  /**
   * @param key of what is sampled under this name. Of more keys than are told apart, one is let through a minute.
   * @returns how many were passed over since the last one that was let through; `null` when this one is passed over.
   */
  take(name: string, key: string): number | null {
    const now = this.#clock()
    const own = `${name} ${key}`
    const taken = this.#windows.has(own) || this.#hasRoom(now) ? own : name
    const window = this.#windows.get(taken)
    if (window !== undefined && !this.#isOver(window, now)) {
      window.passedOver += 1
      return null
    }
    this.#windows.delete(taken)
    this.#windows.set(taken, { begin: now, passedOver: 0 })
    return window?.passedOver ?? 0
  }

  #hasRoom(now: number): boolean {
    if (this.#windows.size < MAX_KEYS) return true
    for (const [key, window] of this.#windows) {
      if (!this.#isOver(window, now)) break
      this.#windows.delete(key)
    }
    return this.#windows.size < MAX_KEYS
  }

  /** Also when the clock was set back. */
  #isOver({ begin }: Window, now: number): boolean {
    return now >= begin + INTERVAL || now < begin
  }
}
