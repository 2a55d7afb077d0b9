import { availableParallelism } from 'node:os'
import { Piscina } from 'piscina'
import { HASH_PARAMETERS } from '../../src/passwords/formats.ts'
import { runSockets } from '../load/sockets.ts'
import { startService, withServers } from '../processes.ts'
import type { Scenario } from '../scenario.ts'
import { signInRequest, signUpOne } from '../sign-in.ts'
import { spread } from '../statistics.ts'

const THREADS = availableParallelism()

/** Verifications per second of the thread pool alone. */
const rawRate = async (pool: Piscina, seconds: number): Promise<number> => {
  const end = performance.now() + seconds * 1_000
  let verified = 0
  const begin = performance.now()
  const lane = async (): Promise<void> => {
    while (performance.now() < end) {
      await pool.run(null)
      verified += 1
    }
  }
  await Promise.all(Array.from({ length: THREADS * 2 }, lane))
  return verified / ((performance.now() - begin) / 1_000)
}

export const signIns: Scenario = {
  name: 'sign-ins',
  title: `Sign-ins beside argon2id alone (${HASH_PARAMETERS.memoryCost / 1_024} MiB, t = ${HASH_PARAMETERS.timeCost}) on as many threads`,
  run: async bench => {
    const { rounds, seconds } = bench
    const store = await bench.emptyStore()
    return withServers([() => startService(store)], async server => {
      const pool = new Piscina({
        filename: new URL('../baselines/argon2-thread.ts', import.meta.url).href,
        minThreads: THREADS,
        maxThreads: THREADS,
        execArgv: [],
      })
      await signUpOne(server)
      const next = signInRequest
      const load = { url: server.url, connections: THREADS * 4, seconds, next }
      await runSockets({ ...load, seconds: 2 })
      await rawRate(pool, 2)
      const samples = []
      for (let round = 0; round < rounds; round += 1) {
        const { latencies, seconds: took } = await runSockets(load)
        samples.push({ service: (latencies.get(200)?.length ?? 0) / took, raw: await rawRate(pool, seconds) })
      }
      await pool.destroy()
      return [
        {
          what: 'sign-ins ÷ verifications',
          value: spread(samples.map(({ service, raw }) => service / raw)),
          unit: '',
          target: { atLeast: 0.95 },
        },
        { what: 'sign-ins', value: spread(samples.map(({ service }) => service)), unit: '/s' },
        { what: 'argon2 alone', value: spread(samples.map(({ raw }) => raw)), unit: '/s' },
      ]
    })
  },
}
