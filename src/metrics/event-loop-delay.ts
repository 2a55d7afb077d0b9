/** The delay of the event loop: how long a request that arrives at any time waits until the loop is free. */
import { DURATIONS, Histogram, type HistogramValue } from '../statistics/histogram.ts'

/** Milliseconds between two measurements. Each takes about 1 µs. */
const INTERVAL = 50

export class EventLoopDelay {
  readonly #delays = new Histogram(DURATIONS)
  readonly #timer: NodeJS.Timeout
  #dueAt = performance.now() + INTERVAL

  constructor() {
    this.#timer = setInterval(() => this.#measure(), INTERVAL).unref()
  }

  get value(): HistogramValue {
    return this.#delays.value
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #measure(): void {
    const now = performance.now()
    // Timers have whole milliseconds, so one may fire up to a millisecond early.
    this.#delays.observe(Math.max(0, now - this.#dueAt) / 1_000)
    this.#dueAt = now + INTERVAL
  }
}
