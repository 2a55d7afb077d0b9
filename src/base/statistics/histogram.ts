/** Counts of values by size, for metrics. */

/** Upper bounds for durations, in seconds: from half the time of a request that needs no database to that of a slow export. */
export const DURATIONS = [
  0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const

export interface HistogramValue {
  /** Upper bounds, ascending. */
  readonly bounds: readonly number[]
  /** The number of values in each bucket, and in one more above the last bound. */
  readonly counts: readonly number[]
  readonly sum: number
}

/** All numbers are in one typed array, so that an observation allocates nothing. */
export class Histogram {
  readonly #bounds: readonly number[]
  /** The counts, then the sum. */
  readonly #numbers: Float64Array

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#numbers = new Float64Array(bounds.length + 2)
  }

  observe(value: number): void {
    const bounds = this.#bounds
    const numbers = this.#numbers
    let bucket = 0
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket += 1
    ;(numbers[bucket] as number) += 1
    ;(numbers[bounds.length + 1] as number) += value
  }

  /** Observes the time since `start`, in seconds. @param start milliseconds of `performance.now()`. */
  observeSince(start: number): void {
    this.observe((performance.now() - start) / 1_000)
  }

  get value(): HistogramValue {
    const sum = this.#numbers.at(-1) as number
    return { bounds: this.#bounds, counts: [...this.#numbers.subarray(0, -1)], sum }
  }
}
