/**
 * A real cluster manager: three PostgreSQL under Patroni with etcd, two instances of the service under load, one that knows all
 * servers and one behind HAProxy. No acknowledged write may be lost, and no token accepted after its revocation was acknowledged.
 *
 * `npm run test:cluster -- --rounds 10 --seed 1 --only kill`
 */
import { parseArgs } from 'node:util'
import { print, seedOf, startExperiment } from '../../support/experiment.ts'
import { createRandom } from '../../support/random.ts'
import { DISRUPTIONS, disrupt } from './disruptions.ts'
import { Cluster, obstacle } from './patroni.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '10' },
    seed: { type: 'string' },
    only: { type: 'string', multiple: true, default: Object.keys(DISRUPTIONS) },
  },
})
/** Milliseconds that a part may take. */
const LIMIT = { base: 120_000, round: 90_000 }

const rounds = Number(values.rounds)
const seed = seedOf(values.seed)

const runAll = async (names: readonly string[]): Promise<void> => {
  const limit = (LIMIT.base + LIMIT.round * rounds) * names.length
  const { context, cleanUp, abandon } = startExperiment(limit)
  try {
    const cluster = await Cluster.start(context)
    const failed: string[] = []
    for (const name of names) {
      const disruption = DISRUPTIONS[name]
      if (disruption === undefined)
        throw new Error(`there is no part ${name}, only ${Object.keys(DISRUPTIONS).join(', ')}`)
      const begin = performance.now()
      const part = { context, cluster, random: createRandom(seed), rounds }
      const report = await disrupt({ ...disruption, name }, part)
      report.figure('took', `${((performance.now() - begin) / 1_000).toFixed(1)} s`)
      if (!report.print()) failed.push(name)
    }
    await cleanUp()
    print(failed.length === 0 ? '\nall passed' : `\nfailed: ${failed.join(', ')}`)
    process.exitCode = failed.length === 0 ? 0 : 1
  } catch (error) {
    abandon(error)
  }
}

const missing = obstacle()
if (missing === null) {
  print(`seed ${seed}`)
  await runAll(values.only)
} else print(`skipped: ${missing}`)
