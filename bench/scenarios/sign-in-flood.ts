import { runExpecting, runRemote } from '../load/sockets.ts'
import { withServers } from '../processes.ts'
import { inRotation, readsOf, SIGN_INS, signUpOne } from '../requests.ts'
import { findings, type Scenario } from '../scenario.ts'
import { quantile } from '../statistics.ts'
import { startService } from '../stores.ts'

const USERS = 1_000
const READS = 2_000

/** Sign-ins per second: ten times what two cores can hash. */
const FLOOD = 2_000

/**
 * The flood has a generator of its own: in the process of the reads it would delay their latencies itself. On two processors both
 * generators still compete with the service, so the p99 depends on the machine; the delay of the event loop is its own.
 */
export const signInFlood: Scenario = {
  name: 'sign-in-flood',
  title: 'GET /account at 2,000/s while sign-ins arrive at 2,000/s, ten times what can be hashed',
  async run(bench) {
    const { rounds, seconds } = bench
    const store = await bench.store(USERS)
    const next = inRotation(readsOf(await store.tokens(USERS)))
    return withServers([() => startService(store)], async server => {
      const { url } = server
      await signUpOne(url)
      const read = async () => {
        await server.ask('watchDelay')
        const { latencies } = await runExpecting(200, { url, connections: 64, seconds, rate: READS, next })
        return { p99: quantile(latencies, 0.99), delay: await server.ask('delay') }
      }
      const flood = async () => {
        const load = { url, connections: 256, seconds, rate: FLOOD, requests: SIGN_INS }
        const refused = (await runRemote(load)).latencies.get(503) ?? []
        return { p99: quantile(refused, 0.99), rate: refused.length / seconds }
      }
      // Compiles the code.
      await Promise.all([read(), flood()])
      const samples = []
      while (samples.length < rounds) {
        const alone = await read()
        const [during, refused] = await Promise.all([read(), flood()])
        samples.push({ alone, during, refused })
      }
      return findings(samples, [
        ['p99 of reads, during ÷ alone', ({ alone, during }) => during.p99 / alone.p99, '×', { atMost: 2 }],
        ['p99 of refused sign-ins', ({ refused }) => refused.p99, 'ms', { atMost: 50 }],
        ['p99 of reads alone', ({ alone }) => alone.p99, 'ms'],
        ['p99 of reads during', ({ during }) => during.p99, 'ms'],
        ['p99 of event-loop delay alone', ({ alone }) => alone.delay, 'ms'],
        ['p99 of event-loop delay during', ({ during }) => during.delay, 'ms'],
        ['refused sign-ins', ({ refused }) => refused.rate, '/s'],
      ])
    })
  },
}
