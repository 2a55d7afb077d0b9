/**
 * Compares the cost of the service with bare Fastify and others, in one run. Missed targets do not fail it.
 *
 * `npm run bench -- [scenario …] [--store sqlite|postgres] [--rounds N] [--seconds N] [--json] [--update]`; without names it runs all
 * scenarios, and records the results (results/, RESULTS.md). With names, `--update` replaces these scenarios in the results. Results go
 * to standard output, progress to standard error.
 */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { CONNECTIONS } from './load/load.ts'
import { sockets } from './load/sockets.ts'
import { wrk } from './load/wrk.ts'
import { progress } from './processes.ts'
import {
  heading,
  readRun,
  recordRun,
  runOf,
  type ScenarioResult,
  toJson,
  toText,
  updatedRun,
} from './report.ts'
import type { Bench } from './scenario.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { createStore, type Engine, isEngine, type Store } from './stores.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    store: { type: 'string', default: 'sqlite' },
    rounds: { type: 'string', default: '7' },
    /** Seconds of load on each side of each round. */
    seconds: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
    /** Replace the named scenarios in the document. */
    update: { type: 'boolean', default: false },
  },
})

const print = (text: string): void => void process.stdout.write(`${text}\n`)

const fail = (message: string): never => {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}

const positive = (name: string, text: string): number =>
  /^[1-9]\d{0,3}$/.test(text) ? Number(text) : fail(`--${name} must be a whole number from 1 to 9999`)

const chosenEngine = (name: string): Engine =>
  isEngine(name) ? name : fail('--store must be sqlite or postgres')

const chosen = positionals.map(
  name =>
    SCENARIOS.find(scenario => scenario.name === name) ??
    fail(`There is no scenario "${name}"; there are: ${SCENARIOS.map(scenario => scenario.name).join(', ')}`),
)

// The exit handlers of processes.ts end started processes and remove files.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

const stores = new Map<number, Promise<Store>>()
const engine = chosenEngine(values.store)

const bench: Bench = {
  // wrk needs less CPU to saturate a server. `wrk --version` always exits with 1: check only whether it starts.
  generator: spawnSync('wrk', ['--version']).error === undefined ? wrk : sockets,
  rounds: positive('rounds', values.rounds),
  seconds: positive('seconds', values.seconds),
  engine,
  store(users) {
    const store = stores.get(users) ?? createStore(engine, users)
    stores.set(users, store)
    return store
  },
}
const { rounds, seconds } = bench
const conditions = { engine, generator: bench.generator.name, rounds, seconds, connections: CONNECTIONS }
const results: ScenarioResult[] = []

if (!values.json) print(heading(conditions))
const scenarios = chosen.length > 0 ? chosen : SCENARIOS
for (const [index, scenario] of scenarios.entries()) {
  const { name, title } = scenario
  progress(`${index + 1} of ${scenarios.length}: ${name}`)
  const skipped = scenario.skipReason?.(bench)
  const result =
    skipped === undefined ? { name, title, findings: await scenario.run(bench) } : { name, title, skipped }
  results.push(result)
  if (!values.json) print(toText(result))
}
const run = runOf(conditions, results)
if (values.json) print(toJson(run))
if (chosen.length === 0) {
  recordRun(run)
} else if (values.update) {
  const updated = updatedRun(readRun(engine), run)
  if (updated === null)
    fail(`The results on ${engine} have other rounds, or are of another machine: run all scenarios`)
  else recordRun(updated)
}
