/**
 * Fault injection into a real process: full disks, deleted files, power cuts, expensive hashes. Every file in `parts/` is
 * one experiment and exports `run`.
 *
 * `npm run test:faults -- --seed 1 --only power-cuts`
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { print, seedOf, startExperiment } from '../../support/experiment.ts'
import { createRandom } from '../../support/random.ts'
import type { Report } from '../instances/report.ts'
import type { FaultPart } from './part.ts'

const PARTS_FOLDER = join(import.meta.dirname, 'parts')

/** Milliseconds that the whole run may take. */
const LIMIT = 600_000

const allParts = readdirSync(PARTS_FOLDER)
  .filter(file => file.endsWith('.ts'))
  .map(file => file.slice(0, -'.ts'.length))
  .sort()

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    only: { type: 'string', multiple: true, default: allParts },
  },
})
const seed = seedOf(values.seed)
const { context, cleanUp, abandon } = startExperiment(LIMIT)

const runPart = async (name: string): Promise<boolean> => {
  if (!allParts.includes(name)) throw new Error(`there is no part ${name}, only ${allParts.join(', ')}`)
  const { run } = (await import(join(PARTS_FOLDER, `${name}.ts`))) as {
    run: (part: FaultPart) => Promise<Report>
  }
  const begin = performance.now()
  const report = await run({ context, random: createRandom(seed) })
  await cleanUp()
  report.figure('took', `${((performance.now() - begin) / 1_000).toFixed(1)} s`)
  return report.print()
}

print(`seed ${seed}`)
try {
  const failed: string[] = []
  for (const name of values.only) if (!(await runPart(name))) failed.push(name)
  print(failed.length === 0 ? '\nall passed' : `\nfailed: ${failed.join(', ')}`)
  process.exitCode = failed.length === 0 ? 0 : 1
} catch (error) {
  abandon(error)
}
