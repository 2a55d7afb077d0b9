/** Samples repeated events: log lines and events of the audit log. */

/** Milliseconds. */
const MINUTE = 60_000

/** Maximum number of keys tracked at a time. */
const MAX_KEYS = 1_000

interface Window {
  readonly start: number
  suppressed: number
}

/** Samples one event of each key in an interval, with bounded memory. */
export class Sampler {
  readonly #clock: () => number
  readonly #interval: number
  /** In order of their start. */
  readonly #windows = new Map<string, Window>()

  /** @param interval milliseconds in which one event of each key passes. */
  constructor(clock: () => number, interval = MINUTE) {
    this.#clock = clock
    this.#interval = interval
  }

  /**
   * @param key within this name. While more than {@link MAX_KEYS} keys are tracked, new keys of a name share one window.
   * @returns the number of events suppressed since the last sampled one; `null` if this event is suppressed.
   */
  take(name: string, key: string): number | null {
    const now = this.#clock()
    const own = `${name} ${key}`
    const taken = this.#windows.has(own) || this.#hasRoom(now) ? own : name
    const window = this.#windows.get(taken)
    if (window !== undefined && !this.#isOver(window, now)) {
      window.suppressed += 1
      return null
    }
    this.#windows.delete(taken)
    this.#windows.set(taken, { start: now, suppressed: 0 })
    return window?.suppressed ?? 0
  }

  #hasRoom(now: number): boolean {
    if (this.#windows.size < MAX_KEYS) return true
    for (const [key, window] of this.#windows) {
      if (!this.#isOver(window, now)) break
      this.#windows.delete(key)
    }
    return this.#windows.size < MAX_KEYS
  }

  /** A clock that was set back ends the window too. */
  #isOver({ start }: Window, now: number): boolean {
    return now >= start + this.#interval || now < start
  }
}
