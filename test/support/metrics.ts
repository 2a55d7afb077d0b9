/** Reads the text format of Prometheus. */
import assert from 'node:assert'
import type { FastifyInstance } from 'fastify'
import { asAdmin } from './build.ts'

type Labels = Readonly<Record<string, string>>

interface Series {
  readonly name: string
  readonly labels: Labels
  readonly value: number
}

const labelsOf = (text: string): Labels =>
  Object.fromEntries([...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value]))

export interface MetricValues {
  readonly text: string
  readonly series: readonly Series[]
  /** The type of each metric. */
  readonly types: ReadonlyMap<string, string>
  /** The sum of the series that have these labels, besides others; 0 without any. */
  sum(name: string, labels?: Labels): number
}

/** @throws {Error} for a line that is not of the format. */
export const parseMetrics = (text: string): MetricValues => {
  const types = new Map<string, string>()
  const series: Series[] = []
  for (const line of text.split('\n').filter(line => line !== '')) {
    const [, metric = '', type = ''] = /^# TYPE (\w+) (\w+)$/.exec(line) ?? []
    if (metric !== '') types.set(metric, type)
    if (line.startsWith('# ')) continue
    const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    assert(name !== '' && Number.isFinite(Number(value)), line)
    series.push({ name, labels: labelsOf(labels), value: Number(value) })
  }
  const sum = (name: string, labels: Labels = {}): number =>
    series
      .filter(each => each.name === name)
      .filter(each => Object.entries(labels).every(([label, value]) => each.labels[label] === value))
      .reduce((total, { value }) => total + value, 0)
  return { text, series, types, sum }
}

export const readMetrics = async (app: FastifyInstance): Promise<MetricValues> => {
  const response = await app.inject({ url: '/admin/metrics', headers: asAdmin })
  assert.equal(response.statusCode, 200, response.body)
  return parseMetrics(response.body)
}

/** @returns how much the sum of these series has grown since `before`. */
export const growth =
  (before: MetricValues, after: MetricValues) =>
  (name: string, labels?: Labels): number =>
    after.sum(name, labels) - before.sum(name, labels)

export const fetchMetrics = async (url: string): Promise<MetricValues> => {
  const response = await fetch(url)
  assert.equal(response.status, 200)
  return parseMetrics(await response.text())
}

/** The address of the metrics in the log, which may have further lines. @returns '' before it is logged. */
export const metricsUrlIn = (log: string): string => /Metrics at (http:\S+\/metrics)/.exec(log)?.[1] ?? ''
