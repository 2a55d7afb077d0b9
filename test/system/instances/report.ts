/** The results of a run: a table of figures, and sentences for errors. */

import { print } from '../../support/experiment.ts'

/** Errors that are printed per part. */
const SHOWN = 15

export class Report {
  readonly #title: string
  readonly #figures: (readonly [name: string, value: string])[] = []
  readonly #failures: string[] = []

  constructor(title: string) {
    this.#title = title
  }

  figure(name: string, value: string | number): void {
    this.#figures.push([name, String(value)])
  }

  /** A figure that must be 0: the number of these errors. */
  failures(name: string, failures: readonly string[]): void {
    this.figure(name, failures.length)
    this.#failures.push(...failures)
  }

  failure(message: string): void {
    this.#failures.push(message)
  }

  /** Records an error unless the condition holds. */
  expect(condition: boolean, message: string): void {
    if (!condition) this.failure(message)
  }

  /** @returns whether there are no errors. */
  print(): boolean {
    const width = Math.max(...this.#figures.map(([name]) => name.length))
    print(`\n${this.#title}: ${this.#failures.length === 0 ? 'passed' : 'FAILED'}`)
    for (const [name, value] of this.#figures) print(`  ${name.padEnd(width)}  ${value}`)
    for (const failure of this.#failures.slice(0, SHOWN)) print(`  ! ${failure}`)
    if (this.#failures.length > SHOWN) print(`  ! and ${this.#failures.length - SHOWN} more`)
    return this.#failures.length === 0
  }
}

/** The quantile `part` of the values. */
export const quantile = (values: readonly number[], part: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN
}

export const milliseconds = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`

/** Median, 99th percentile and maximum. */
export const spread = (values: readonly number[]): string =>
  [quantile(values, 0.5), quantile(values, 0.99), quantile(values, 1)].map(milliseconds).join(' / ')
