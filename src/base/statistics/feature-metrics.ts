/** Counters and gauges of features. */
import type { FeatureMetric } from './metric.ts'

type Labels<Metric extends FeatureMetric> = Metric['labels'] extends readonly []
  ? []
  : [labels: Readonly<Record<Metric['labels'][number], string>>]

interface Counter<Metric extends FeatureMetric> {
  /**
   * Adds to the counter: `metrics.gatehouse_notes_added_total.add({ actor: 'user' }, notes.length)`.
   * @param args the values of the labels, if the metric has any; then how many to add, by default 1.
   * @throws {TypeError} if the number is negative or none.
   */
  add(...args: [...Labels<Metric>, count?: number]): void
}

interface Gauge<Metric extends FeatureMetric> {
  set(value: number, ...labels: Labels<Metric>): void
}

/** What a feature counts with, by the names of its metrics. */
export type MetricRecorders<Metrics extends Readonly<Record<string, FeatureMetric>>> = {
  readonly [Name in keyof Metrics]: Metrics[Name]['type'] extends 'counter'
    ? Counter<Metrics[Name]>
    : Gauge<Metrics[Name]>
}

export interface LabelledValue {
  readonly labels: Readonly<Record<string, string>>
  value: number
}

/** Combinations of label values that a metric has. Where a client chooses a value, their number must not grow with its requests. */
const MAX_COMBINATIONS = 1_000

/** The value of every label for further combinations. */
const OTHER = 'other'

class Values {
  readonly #names: readonly string[]
  readonly #onFull: () => void
  readonly #values = new Map<string, LabelledValue>()
  #isFull = false

  /** @param onFull called for the first combination that counts as {@link OTHER}. */
  constructor(names: readonly string[], onFull: () => void) {
    this.#names = names
    this.#onFull = onFull
  }

  /** A metric without labels begins with 0. */
  get all(): readonly LabelledValue[] {
    if (this.#names.length === 0) this.#find({})
    return [...this.#values.values()]
  }

  /** A metric without labels takes the number alone. @throws {TypeError} if the number is negative or none. */
  add(...args: readonly (LabelledValue['labels'] | number | undefined)[]): void {
    const [labels, count = 1] = this.#names.length === 0 ? [{}, args[0]] : args
    if (typeof count !== 'number' || !(count >= 0))
      throw new TypeError('a counter adds a number that is not negative')
    this.#find(labels as LabelledValue['labels']).value += count
  }

  /** @throws {TypeError} if the value is no number. */
  set(value: number, labels: LabelledValue['labels'] = {}): void {
    if (typeof value !== 'number') throw new TypeError('the value of a gauge must be a number')
    this.#find(labels).value = value
  }

  #find(given: LabelledValue['labels']): LabelledValue {
    // Text, whatever a feature in JavaScript gives: another value would fail every reading of the metrics.
    const textOf = (name: string): string => (Object.hasOwn(given, name) ? String(given[name]) : '')
    const labels = this.#labels(textOf)
    const key = JSON.stringify(labels)
    const found = this.#values.get(key)
    if (found !== undefined) return found
    return this.#values.size < MAX_COMBINATIONS ? this.#add(key, labels) : this.#findOther()
  }

  #findOther(): LabelledValue {
    if (!this.#isFull) this.#onFull()
    this.#isFull = true
    const labels = this.#labels(() => OTHER)
    const key = JSON.stringify(labels)
    return this.#values.get(key) ?? this.#add(key, labels)
  }

  #labels(textOf: (name: string) => string): LabelledValue['labels'] {
    return Object.fromEntries(this.#names.map(name => [name, textOf(name)]))
  }

  #add(key: string, labels: LabelledValue['labels']): LabelledValue {
    const added = { labels, value: 0 }
    this.#values.set(key, added)
    return added
  }
}

export class FeatureMetrics {
  readonly #metrics: Readonly<Record<string, Values>>

  /** @param onFull called once for each metric with more combinations of label values than it keeps. */
  constructor(
    declarations: Readonly<Record<string, Pick<FeatureMetric, 'labels'>>>,
    onFull: (metric: string) => void = () => undefined,
  ) {
    this.#metrics = Object.fromEntries(
      Object.entries(declarations).map(([name, { labels }]) => [
        name,
        new Values(labels, () => onFull(name)),
      ]),
    )
  }

  /** {@link MetricRecorders} of every feature. */
  get recorders(): Readonly<Record<string, object>> {
    return this.#metrics
  }

  get values(): Readonly<Record<string, readonly LabelledValue[]>> {
    return Object.fromEntries(Object.entries(this.#metrics).map(([name, { all }]) => [name, all]))
  }
}
