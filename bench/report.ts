/** The bench's words: tables for people, one JSON document for machines. */
import { availableParallelism, cpus } from 'node:os'
import type { ScenarioResult, SideResult } from './measure.ts'
import type { Spread } from './statistics.ts'

export interface Conditions {
  readonly generator: string
  readonly rounds: number
  /** Seconds of load on each side of each round. */
  readonly seconds: number
  readonly connections: number
}

const machine = () => ({
  node: process.version,
  platform: `${process.platform} ${process.arch}`,
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: availableParallelism(),
})

const whole = (value: number): string => Math.round(value).toLocaleString('en-US')
const decimals = (digits: number) => (value: number) => value.toFixed(digits)
const withSpread = ({ median, min, max }: Spread, format: (value: number) => string): string =>
  `${format(median)} (${format(min)} to ${format(max)})`

const cells = (name: string, side: SideResult): readonly string[] => [
  name,
  withSpread(side.requestsPerSecond, whole),
  withSpread(side.p50, decimals(2)),
  withSpread(side.p99, decimals(2)),
  withSpread(side.cpuPerRequest, decimals(2)),
]

const HEAD = ['', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs/request']

const table = (rows: readonly (readonly string[])[]): string => {
  const widths = HEAD.map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  return rows
    .map(row => `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd())
    .join('\n')
}

export const heading = ({ generator, rounds, seconds, connections }: Conditions): string => {
  const { node, platform, cpu, cores } = machine()
  return (
    `Load by ${generator}, ${connections} connections, ${rounds} rounds of ${seconds} s on each side; ` +
    `Node ${node}, ${platform}, ${cores} × ${cpu}\nFigures are medians of the rounds, with the lowest and highest.\n`
  )
}

export const toText = ({
  name,
  title,
  service,
  yardstick,
  throughputRatio,
  cpuRatio,
}: ScenarioResult): string =>
  [
    `${name}: ${title}`,
    table([HEAD, cells('service', service), cells('bare Fastify', yardstick)]),
    `  ratio of throughput ${withSpread(throughputRatio, decimals(3))}, of CPU ${withSpread(cpuRatio, decimals(3))}`,
    '',
  ].join('\n')

export const toJson = (conditions: Conditions, results: readonly ScenarioResult[]): string =>
  JSON.stringify({ conditions: { ...conditions, ...machine() }, scenarios: results }, null, 2)
