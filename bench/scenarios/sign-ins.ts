import { availableParallelism } from 'node:os'
import { Piscina } from 'piscina'
import { HASH_PARAMETERS } from '#core/passwords/formats'
import { runSockets } from '../load/sockets.ts'
import { startService, withServers } from '../processes.ts'
import type { Scenario } from '../scenario.ts'
import { signInRequest, signUpOne } from '../sign-in.ts'
import { spread } from '../statistics.ts'

const THREADS = availableParallelism()

const ownCpu = (): number => {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Verifications per second of the thread pool alone, and microseconds of CPU for each. */
const raw = async (pool: Piscina, seconds: number): Promise<{ rate: number; cpu: number }> => {
  const cpuBefore = ownCpu()
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
  return {
    rate: verified / ((performance.now() - begin) / 1_000),
    cpu: (ownCpu() - cpuBefore) / verified,
  }
}

/**
 * Where the threads occupy every processor, everything beside hashing takes from them, so the ratio of CPU is the most that the ratio
 * of rates can be.
 */
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
      await raw(pool, 2)
      const samples = []
      for (let round = 0; round < rounds; round += 1) {
        const before = { service: await server.ask('cpu'), generator: ownCpu() }
        const { latencies, seconds: took } = await runSockets(load)
        const signedIn = latencies.get(200)?.length ?? 0
        const cpu = ((await server.ask('cpu')) - before.service) / signedIn
        const generator = (ownCpu() - before.generator) / signedIn
        samples.push({ rate: signedIn / took, cpu, generator, alone: await raw(pool, seconds) })
      }
      await pool.destroy()
      return [
        {
          what: 'sign-ins ÷ verifications',
          value: spread(samples.map(({ rate, alone }) => rate / alone.rate)),
          unit: '',
          target: { atLeast: 0.95 },
        },
        {
          what: 'CPU, verification ÷ sign-in and its generator',
          value: spread(samples.map(({ cpu, generator, alone }) => alone.cpu / (cpu + generator))),
          unit: '',
        },
        { what: 'sign-ins', value: spread(samples.map(({ rate }) => rate)), unit: '/s' },
        { what: 'argon2 alone', value: spread(samples.map(({ alone }) => alone.rate)), unit: '/s' },
        { what: 'CPU of a sign-in', value: spread(samples.map(({ cpu }) => cpu)), unit: 'µs' },
        {
          what: 'CPU of its generator',
          value: spread(samples.map(({ generator }) => generator)),
          unit: 'µs',
        },
        { what: 'CPU of a verification', value: spread(samples.map(({ alone }) => alone.cpu)), unit: 'µs' },
      ]
    })
  },
}
