/** No token is accepted later than a second after its revocation was acknowledged, whatever is frozen (docs/verifying.md). */
import t from 'tap'
import { ADMIN_KEY, type Context } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { startServer } from '../support/process.ts'
import { createRandom } from '../support/random.ts'
import { inShortRun } from '../support/run.ts'
import { runHistory } from '../support/verifier-histories.ts'

/** Milliseconds. */
const DURATION = inShortRun(5_000, 20_000)

await onEnginesOfRun(t, async (t, { name, newDatabase }) => {
  const start = async (t: Context) => {
    const DATABASE_URL = await newDatabase(t)
    const env = { DATABASE_URL, WORKERS: name === 'sqlite' ? '2' : '1' }
    const first = await startServer(t, { env })
    return name === 'sqlite' ? [first] : [first, await startServer(t, { env })]
  }

  t.test('a verifier follows revocations within a second', async t => {
    const servers = await start(t)
    const services = {
      urls: servers.map(({ url }) => url),
      processes: servers.map(({ process }) => process),
      adminKey: ADMIN_KEY,
    }
    const seed = Date.now() % 1_000_000
    const history = await runHistory(t, services, createRandom(seed), DURATION)
    const { sessions, verifications, hits, faults, delays, late } = history
    t.comment(`seed ${seed}: ${JSON.stringify({ sessions, verifications, hits, faults })}`)
    t.same(late, [], `seed ${seed}`)
    t.ok(delays.length > 10, `${delays.length} revoked tokens were accepted before`)
    t.ok(hits > 100, `${hits} hits`)
  })
})
