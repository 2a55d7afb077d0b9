/** Output of the bench: text tables, and the recorded runs with the page that shows them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type Finding, isMet } from './scenario.ts'
import type { Spread } from './statistics.ts'
import type { Engine } from './stores.ts'

export interface Conditions {
  readonly engine: Engine
  readonly generator: string
  readonly rounds: number
  /** Seconds of load on each side of each round. */
  readonly seconds: number
  readonly connections: number
}

export type ScenarioResult = { readonly name: string; readonly title: string } & (
  | { readonly findings: readonly Finding[] }
  /** Why it did not run. */
  | { readonly skipped: string }
)

/** What a scenario measured under which conditions, on which machine. */
export interface Run {
  readonly conditions: Conditions & ReturnType<typeof machine>
  readonly scenarios: readonly ScenarioResult[]
}

export const machine = () => ({
  node: process.version,
  platform: `${process.platform} ${process.arch}`,
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: availableParallelism(),
  memoryGiB: Math.round(totalmem() / 2 ** 30),
})

/** Three significant digits, with separators of thousands. */
const number = (value: number): string =>
  value.toLocaleString('en-US', { maximumFractionDigits: value >= 100 ? 0 : value >= 10 ? 1 : 2 })

const measured = ({ median, min, max }: Spread, unit: string): string => {
  const range = min === max ? '' : ` (${number(min)} to ${number(max)})`
  return `${number(median)}${unit === '' ? '' : ` ${unit}`}${range}`
}

const targetOf = ({ target }: Finding): string => {
  if (target === undefined) return ''
  return 'atLeast' in target ? `≥ ${number(target.atLeast)}` : `≤ ${number(target.atMost)}`
}

const verdict = (finding: Finding): string =>
  finding.target === undefined ? '' : isMet(finding) ? 'yes' : 'no'

const HEAD = ['', 'measured', 'target', 'reached']

/** The figure as documents quote it: what, median with minimum and maximum, target, whether it is reached. */
export const cellsOf = (finding: Finding): readonly string[] => [
  finding.what,
  measured(finding.value, finding.unit),
  targetOf(finding),
  verdict(finding),
]

const STORES: Record<Engine, string> = {
  sqlite: 'SQLite files',
  postgres: 'databases of a PostgreSQL on the same machine, with fsync, whose CPU is not included',
}

const conditionsOf = (conditions: Run['conditions']): string => {
  const { engine, generator, rounds, seconds, connections, node, platform, cpu, cores, memoryGiB } =
    conditions
  return (
    `Load by ${generator}, ${connections} connections, ${rounds} rounds of ${seconds} s on each side; ` +
    `Node ${node}, ${platform}, ${cores} × ${cpu}, ${memoryGiB} GiB.\nStores are ${STORES[engine]}.`
  )
}

export const heading = (conditions: Conditions): string =>
  `${conditionsOf({ ...conditions, ...machine() })} Figures are medians of the rounds, with minimum and maximum.\n`

export const toText = (result: ScenarioResult): string => {
  if ('skipped' in result) return `${result.name} was skipped: ${result.skipped}\n`
  const rows = [HEAD, ...result.findings.map(cellsOf)]
  const widths = HEAD.map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const lines = rows.map(row =>
    `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd(),
  )
  return [`${result.name}: ${result.title}`, ...lines, ''].join('\n')
}

export const runOf = (conditions: Conditions, scenarios: readonly ScenarioResult[]): Run => ({
  conditions: { ...conditions, ...machine() },
  scenarios,
})

/** Replaces scenarios of a run by later results. @returns `null` if the run was measured under other conditions. */
export const updatedRun = ({ conditions, scenarios }: Run, later: Run): Run | null =>
  isDeepStrictEqual(conditions, later.conditions)
    ? {
        conditions,
        scenarios: scenarios.map(old => later.scenarios.find(({ name }) => name === old.name) ?? old),
      }
    : null

export const toJson = (run: Run): string => JSON.stringify(run, null, 2)

/** What the page shows of a scenario: the figures with a target, else the first one. */
const headlinesOf = (result: ScenarioResult): readonly Finding[] => {
  if ('skipped' in result) return []
  const targeted = result.findings.filter(({ target }) => target !== undefined)
  return targeted.length > 0 ? targeted : result.findings.slice(0, 1)
}

const medianIn = (run: Run, name: string, what: string): string => {
  const scenario = run.scenarios.find(result => result.name === name)
  const findings = scenario && 'findings' in scenario ? scenario.findings : []
  const finding = findings.find(each => each.what === what)
  return finding === undefined ? '' : `${number(finding.value.median)} ${finding.unit}`.trim()
}

/** The page of the recorded runs, as Markdown. */
export const toPage = (sqlite: Run, postgres: Run): string => {
  const rows = sqlite.scenarios.flatMap(result =>
    headlinesOf(result).map(finding => [
      `\`${result.name}\``,
      finding.what,
      medianIn(sqlite, result.name, finding.what),
      medianIn(postgres, result.name, finding.what),
      targetOf(finding),
    ]),
  )
  const head = ['scenario', 'figure', 'SQLite', 'PostgreSQL', 'target']
  const lines = [head, head.map(() => '---'), ...rows].map(row =>
    `| ${row.join(' | ')} |`.replaceAll(/ {2,}/g, ' '),
  )
  return [
    '# Benchmark results',
    'Written by `npm run bench`: do not edit. `results/` has every figure, with minimum and maximum. Ratios compare two processes ' +
      'that are loaded alternately within one run; other figures depend on the machine.',
    ...[sqlite, postgres].map(({ conditions }) => conditionsOf(conditions).replace('\n', ' ')),
    `${lines.join('\n')}\n`,
  ].join('\n\n')
}

const fileOf = (engine: Engine): string => join(import.meta.dirname, 'results', `${engine}.json`)

/** The recorded run of all scenarios on an engine. */
export const readRun = (engine: Engine): Run => JSON.parse(readFileSync(fileOf(engine), 'utf8')) as Run

/** Records a run of all scenarios on its engine, and writes the page again. */
export const recordRun = (run: Run): void => {
  writeFileSync(fileOf(run.conditions.engine), `${toJson(run)}\n`)
  writeFileSync(join(import.meta.dirname, 'RESULTS.md'), toPage(readRun('sqlite'), readRun('postgres')))
}
