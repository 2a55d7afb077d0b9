/** Reads the history of metrics as curves. */

import { MAX_CURVES } from '#base/plots/panel'
import { DURATIONS } from '#base/statistics/histogram'
import type { ConsolePlot } from '#http/pages/feature-pages'
import type { ConsoleDeps } from './definitions.ts'
import { DAY, HOUR, MINUTE } from './history-recorder.ts'
import { addValues, type Count, type HistoryValues, NO_VALUES, type Resolution } from './stored-history.ts'

interface Range {
  readonly resolution: Resolution
  /** Milliseconds: of all, of one value, and between two ticks. */
  readonly length: number
  readonly bucket: number
  readonly tick: number
}

/** Ranges by the parameter of the URL. The first one is the default. */
export const RANGES = {
  hour: { resolution: 'minute', length: HOUR, bucket: MINUTE, tick: 15 * MINUTE },
  day: { resolution: 'quarter-hour', length: DAY, bucket: 15 * MINUTE, tick: 6 * HOUR },
  month: { resolution: 'hour', length: 30 * DAY, bucket: 6 * HOUR, tick: 7 * DAY },
  quarter: { resolution: 'day', length: 90 * DAY, bucket: DAY, tick: 21 * DAY },
} as const satisfies Record<string, Range>

export type RangeName = keyof typeof RANGES

interface Bucket {
  /** Milliseconds since the epoch. */
  readonly beginsAt: number
  /** Milliseconds of it that have passed. */
  readonly elapsed: number
  readonly values: HistoryValues
}

export interface History {
  readonly range: Range
  /** Without gaps. */
  readonly buckets: readonly Bucket[]
}

export interface Curve {
  readonly name: string
  /** For each bucket; `null` where nothing is known. */
  readonly values: readonly (number | null)[]
}

export class ConsoleHistory {
  readonly #deps: Pick<ConsoleDeps, 'store' | 'clock'>

  constructor(deps: Pick<ConsoleDeps, 'store' | 'clock'>) {
    this.#deps = deps
  }

  async read(name: RangeName): Promise<History> {
    const { store, clock } = this.#deps
    const range: Range = RANGES[name]
    const { resolution, length, bucket } = range
    const now = clock()
    // The minute that has begun is written at its end.
    const end = Math.floor(now / bucket) * bucket + (bucket === MINUTE ? 0 : bucket)
    const from = end - length
    const sums = new Map<number, HistoryValues>()
    for (const { beginsAt, values } of await store.readHistory(resolution, from)) {
      const begin = Math.floor(beginsAt / bucket) * bucket
      sums.set(begin, addValues(sums.get(begin) ?? NO_VALUES, values))
    }
    const buckets = Array.from({ length: length / bucket }, (_, index) => {
      const beginsAt = from + index * bucket
      const elapsed = Math.max(MINUTE, Math.min(bucket, now - beginsAt))
      return { beginsAt, elapsed, values: sums.get(beginsAt) ?? NO_VALUES }
    })
    return { range, buckets }
  }
}

/** The values of a metric, by its name with labels. */
const ofMetric = <Value>(values: Readonly<Record<string, Value>>, metric: string) =>
  Object.entries(values).filter(([name]) => name === metric || name.startsWith(`${metric}{`))

const labelsOf = (name: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Array.from(name.matchAll(/(\w+)="([^"]*)"/g), ([, label = '', text = '']) => [label, text]),
  )

const sumOf = (count: Count): number =>
  typeof count === 'number' ? count : count.reduce((sum, each) => sum + each, 0)

/** A quantile of a histogram in milliseconds, linear within a bucket; `null` if it is empty. */
const quantileOf = (counts: readonly number[], quantile: number): number | null => {
  const total = sumOf(counts)
  if (total === 0) return null
  let below = 0
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && below + count >= quantile * total) {
      const low = DURATIONS[bucket - 1] ?? 0
      const high = DURATIONS[bucket] ?? low
      return (low + ((high - low) * (quantile * total - below)) / count) * 1_000
    }
    below += count
  }
  return null
}

const histogramIn = ({ values }: Bucket, metric: string): readonly number[] =>
  ofMetric(values.counts, metric).reduce<readonly number[]>(
    (sum, [, value]) =>
      typeof value === 'number' ? sum : value.map((count, index) => count + (sum[index] ?? 0)),
    [],
  )

/** The curves with the greatest values. */
const greatest = (curves: ReadonlyMap<string, readonly (number | null)[]>): readonly Curve[] => {
  const sum = ({ values }: Curve): number => values.reduce<number>((total, value) => total + (value ?? 0), 0)
  return Array.from(curves, ([name, values]) => ({ name, values }))
    .sort((one, other) => sum(other) - sum(one))
    .slice(0, MAX_CURVES)
}

export const curvesOf = ({ buckets }: History, plot: ConsolePlot): readonly Curve[] => {
  const { metric, kind, curve = () => '' } = plot
  if (kind === 'quantiles') {
    const histograms = buckets.map(bucket => histogramIn(bucket, metric))
    return [
      { name: 'p50', values: histograms.map(counts => quantileOf(counts, 0.5)) },
      { name: 'p99', values: histograms.map(counts => quantileOf(counts, 0.99)) },
    ]
  }
  const curves = new Map<string, (number | null)[]>()
  // Each bucket has the same names: reading their labels once halves the time.
  const curveNames = new Map<string, string>()
  for (const [index, { values, elapsed }] of buckets.entries()) {
    const isRate = kind === 'rate'
    const found = isRate ? ofMetric(values.counts, metric) : ofMetric(values.gauges, metric)
    for (const [full, value] of found) {
      const name = curveNames.get(full) ?? curve(labelsOf(full))
      curveNames.set(full, name)
      const line = curves.get(name) ?? buckets.map(() => (isRate ? 0 : null))
      const amount = isRate ? (sumOf(value) * MINUTE) / elapsed : sumOf(value)
      line[index] = (line[index] ?? 0) + amount
      curves.set(name, line)
    }
  }
  return greatest(curves)
}
