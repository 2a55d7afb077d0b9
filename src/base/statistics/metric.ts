/** Declarations of metrics: of the core, and of features. */

/** How the gauges of several workers become one. Counters and histograms are added up. */
export type Aggregation = 'sum' | 'min' | 'max'

/** What `counter` and `gauge` return. */
export interface FeatureMetric {
  readonly type: 'counter' | 'gauge'
  readonly help: string
  readonly labels: readonly string[]
  /** Gauges only. */
  readonly workers?: Aggregation
  /** The labels by which the console keeps its history. Values that differ in others become one. */
  readonly keptBy?: readonly string[]
}

export interface Metric extends Omit<FeatureMetric, 'type'> {
  readonly type: FeatureMetric['type'] | 'histogram'
}

/** A number that only increases. @param labels whose values must be few: each combination is kept for as long as the process runs. */
export const counter = <const Labels extends readonly string[]>(help: string, ...labels: Labels) =>
  ({ type: 'counter', help, labels }) as const

/** A distribution of durations or sizes. */
export const histogram = (help: string, ...labels: readonly string[]) =>
  ({ type: 'histogram', help, labels }) as const

/** A number that may decrease. @param workers how the numbers of several workers become one. */
export const gauge = <const Labels extends readonly string[]>(
  workers: Aggregation,
  help: string,
  ...labels: Labels
) => ({ type: 'gauge', help, labels, workers }) as const

/** A metric whose history the console keeps. @param labels by which it is kept: few combinations. */
export const kept = <Declared extends Metric>(metric: Declared, ...labels: readonly string[]) => ({
  ...metric,
  keptBy: labels,
})

export type MetricDeclarations = Readonly<Record<string, Metric>>
