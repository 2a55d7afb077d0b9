/** The text format of Prometheus, version 0.0.4. */
import type { HistogramValue } from './histogram.ts'
import type { MetricDeclarations } from './metric.ts'
import type { Sample, Snapshot } from './snapshot.ts'

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

const line = (name: string, labels: string, value: number): string =>
  labels === '' ? `${name} ${value}\n` : `${name}{${labels}} ${value}\n`

const histogramLines = (name: string, labels: string, { bounds, counts, sum }: HistogramValue): string => {
  const prefix = labels === '' ? '' : `${labels},`
  let count = 0
  const buckets = counts.map((inBucket, index) => {
    count += inBucket
    return line(`${name}_bucket`, `${prefix}le="${bounds[index] ?? '+Inf'}"`, count)
  })
  return `${buckets.join('')}${line(`${name}_sum`, labels, sum)}${line(`${name}_count`, labels, count)}`
}

const sampleLines = (name: string, { labels, value }: Sample): string =>
  typeof value === 'number' ? line(name, labels, value) : histogramLines(name, labels, value)

export const toText = (declarations: MetricDeclarations, snapshot: Snapshot): string =>
  Object.entries(declarations)
    .flatMap(([name, { help, type }]) => {
      const samples = snapshot[name] ?? []
      if (samples.length === 0) return []
      const lines = samples.map(each => sampleLines(name, each)).join('')
      return [`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines}`]
    })
    .join('')
