/** Output of the bench: text tables, Markdown and JSON. */
import { availableParallelism, cpus, totalmem } from 'node:os'
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

const STORE: Record<Engine, string> = { sqlite: 'SQLite', postgres: 'PostgreSQL' }

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

const rowsOf = (findings: readonly Finding[]): readonly (readonly string[])[] =>
  findings.map(finding => [
    finding.what,
    measured(finding.value, finding.unit),
    targetOf(finding),
    verdict(finding),
  ])

const STORES: Record<Engine, string> = {
  sqlite: 'SQLite files',
  postgres: 'databases of a PostgreSQL on the same machine, with fsync, whose CPU is not included',
}

export const heading = ({ engine, generator, rounds, seconds, connections }: Conditions): string => {
  const { node, platform, cpu, cores, memoryGiB } = machine()
  return (
    `Load by ${generator}, ${connections} connections, ${rounds} rounds of ${seconds} s on each side; ` +
    `Node ${node}, ${platform}, ${cores} × ${cpu}, ${memoryGiB} GiB.\n` +
    `Stores are ${STORES[engine]}. Figures are medians of the rounds, with minimum and maximum.\n`
  )
}

export const toText = (result: ScenarioResult): string => {
  if ('skipped' in result) return `${result.name} was skipped: ${result.skipped}\n`
  const rows = [HEAD, ...rowsOf(result.findings)]
  const widths = HEAD.map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const lines = rows.map(row =>
    `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd(),
  )
  return [`${result.name}: ${result.title}`, ...lines, ''].join('\n')
}

const markdownOf = (result: ScenarioResult): string => {
  const head = `## ${result.name}\n\n${result.title}\n\n`
  if ('skipped' in result) return `${head}Skipped: ${result.skipped}.\n`
  const rows = [HEAD, HEAD.map(() => '---'), ...rowsOf(result.findings)]
  const lines = rows.map(row => `| ${row.join(' | ')} |`.replaceAll(/ {2,}/g, ' '))
  return `${head}${lines.join('\n')}\n`
}

const introductionOf = (conditions: Conditions): string =>
  [
    `# Benchmark results on ${STORE[conditions.engine]}`,
    'Written by `npm run bench`: do not edit. Ratios compare two processes that are loaded alternately within one run; ' +
      'other figures depend on the machine.',
    heading(conditions).trim().replace('\n', ' '),
  ].join('\n\n')

/** The document of a run of all scenarios. */
export const toMarkdown = (conditions: Conditions, results: readonly ScenarioResult[]): string =>
  [introductionOf(conditions), ...results.map(markdownOf)].join('\n\n')

/** The start of each scenario in the document. */
const SECTION = /^(?=## )/m

/**
 * Replaces the scenarios of a later run in the document of all.
 * @returns `null` if the document was measured under other conditions.
 */
export const updateMarkdown = (
  document: string,
  conditions: Conditions,
  results: readonly ScenarioResult[],
): string | null => {
  const [introduction = '', ...sections] = document.split(SECTION)
  if (introduction.trim() !== introductionOf(conditions)) return null
  const updated = sections.map(section => {
    const result = results.find(({ name }) => section.startsWith(`## ${name}\n`))
    return (result === undefined ? section : markdownOf(result)).trim()
  })
  return `${[introduction.trim(), ...updated].join('\n\n\n')}\n`.replace('\n\n\n', '\n\n')
}

export const toJson = (conditions: Conditions, results: readonly ScenarioResult[]): string =>
  JSON.stringify({ conditions: { ...conditions, ...machine() }, scenarios: results }, null, 2)
