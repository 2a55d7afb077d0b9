import { hasherLimits, PooledPasswordHasher } from '#core/passwords/hasher'
import { dummyHash, HASH_PARAMETERS } from '#core/passwords/our-hash'
import { runExpecting } from '../load/sockets.ts'
import { withServers } from '../processes.ts'
import { SIGN_IN, signUpOne } from '../requests.ts'
import { findings, type Scenario } from '../scenario.ts'
import { createStore, startService } from '../stores.ts'

const LIMITS = hasherLimits(1)

const HASH = dummyHash()

const ownCpu = (): number => {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Verifications per second of the hashing threads alone, and microseconds of CPU for each. */
const verifyAlone = async (hasher: PooledPasswordHasher, seconds: number) => {
  const [cpuBefore, begin] = [ownCpu(), performance.now()]
  const end = begin + seconds * 1_000
  let verified = 0
  const lane = async (): Promise<void> => {
    while (performance.now() < end) {
      await hasher.verify('a rather long pass phrase 7', HASH)
      verified += 1
    }
  }
  await Promise.all(Array.from({ length: LIMITS.threads * 2 }, lane))
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
  async run({ engine, rounds, seconds }) {
    const store = await createStore(engine, 0)
    const hasher = new PooledPasswordHasher(() => undefined, LIMITS)
    return withServers([() => startService(store)], async server => {
      await signUpOne(server.url)
      const load = { url: server.url, connections: LIMITS.threads * 4, next: () => SIGN_IN }
      const signIn = async (seconds: number) => {
        const before = { service: await server.ask('cpu'), generator: ownCpu() }
        const { latencies, rate } = await runExpecting(200, { ...load, seconds })
        const cpu = ((await server.ask('cpu')) - before.service) / latencies.length
        return { rate, cpu, generator: (ownCpu() - before.generator) / latencies.length }
      }
      await signIn(2)
      await verifyAlone(hasher, 2)
      const samples = []
      while (samples.length < rounds)
        samples.push({ ...(await signIn(seconds)), alone: await verifyAlone(hasher, seconds) })
      return findings(samples, [
        ['sign-ins ÷ verifications', ({ rate, alone }) => rate / alone.rate, '', { atLeast: 0.95 }],
        [
          'CPU, verification ÷ sign-in and its generator',
          ({ cpu, generator, alone }) => alone.cpu / (cpu + generator),
        ],
        ['sign-ins', ({ rate }) => rate, '/s'],
        ['argon2 alone', ({ alone }) => alone.rate, '/s'],
        ['CPU of a sign-in', ({ cpu }) => cpu, 'µs'],
        ['CPU of its generator', ({ generator }) => generator, 'µs'],
        ['CPU of a verification', ({ alone }) => alone.cpu, 'µs'],
      ])
    }).finally(() => hasher.close())
  },
}
