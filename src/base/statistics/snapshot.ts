/** The values of all metrics at one time, and the sum of those of several processes. A snapshot is plain data. */

import type { HistogramValue } from './histogram.ts'
import type { Aggregation, Metric, MetricDeclarations } from './metric.ts'

export type Value = number | HistogramValue

export interface Sample {
  /** Labels in the text format, such as `method="GET",route="/account"`; empty without labels. */
  readonly labels: string
  readonly value: Value
}

/** Metrics without samples do not apply: those of the other engine, for example. */
export type Snapshot = Readonly<Record<string, readonly Sample[]>>

const escapeLabel = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

export const sample = (value: Value, labels: Readonly<Record<string, string>> = {}): Sample => ({
  labels: Object.entries(labels)
    .map(([name, text]) => `${name}="${escapeLabel(text)}"`)
    .join(','),
  value,
})

export const samplesBy = (label: string, values: Readonly<Record<string, Value>>): Sample[] =>
  Object.entries(values).map(([name, value]) => sample(value, { [label]: name }))

const addHistograms = (one: HistogramValue, other: HistogramValue): HistogramValue => ({
  bounds: one.bounds,
  counts: one.counts.map((count, bucket) => count + (other.counts[bucket] ?? 0)),
  sum: one.sum + other.sum,
})

const COMBINE: Readonly<Record<Aggregation, (one: number, other: number) => number>> = {
  sum: (one, other) => one + other,
  min: Math.min,
  max: Math.max,
}

const combine = ({ workers = 'sum' }: Metric, one: Value, other: Value): Value => {
  if (typeof one === 'number') return COMBINE[workers](one, other as number)
  return addHistograms(one, other as HistogramValue)
}

/** The values of several processes as those of one: by the declaration of each metric, for each combination of labels. */
export const aggregate = (declarations: MetricDeclarations, snapshots: readonly Snapshot[]): Snapshot => {
  const result: Record<string, readonly Sample[]> = {}
  for (const [name, metric] of Object.entries(declarations)) {
    const values = new Map<string, Value>()
    for (const { labels, value } of snapshots.flatMap(snapshot => snapshot[name] ?? [])) {
      const other = values.get(labels)
      values.set(labels, other === undefined ? value : combine(metric, other, value))
    }
    if (values.size > 0) result[name] = [...values].map(([labels, value]) => ({ labels, value }))
  }
  return result
}

export interface KeptValue {
  readonly metric: string
  readonly isGauge: boolean
  /** The labels by which it is kept, such as `method="GET",route="/account"`. */
  readonly labels: string
  readonly value: Value
}

/** Label values have no escaped quotes where history is kept: they are names. */
const LABEL = /(\w+)="[^"]*"/g

const selected = (labels: string, names: readonly string[]): string =>
  Array.from(labels.matchAll(LABEL))
    .filter(([, name = '']) => names.includes(name))
    .map(([text]) => text)
    .join(',')

export const keptValues = (declarations: MetricDeclarations, snapshot: Snapshot): readonly KeptValue[] =>
  Object.entries(declarations).flatMap(([name, metric]) => {
    const { keptBy } = metric
    if (keptBy === undefined) return []
    const fewer = (snapshot[name] ?? []).map(({ labels, value }) => ({
      labels: selected(labels, keptBy),
      value,
    }))
    const { [name]: samples = [] } = aggregate({ [name]: metric }, [{ [name]: fewer }])
    return samples.map(each => ({ ...each, metric: name, isGauge: metric.type === 'gauge' }))
  })

/** A snapshot without gauges: what remains of a process that has ended, so that no sum decreases. */
export const countsOf = (declarations: MetricDeclarations, snapshot: Snapshot): Snapshot =>
  Object.fromEntries(Object.entries(snapshot).filter(([name]) => declarations[name]?.type !== 'gauge'))
