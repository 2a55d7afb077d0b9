import { RemoteSockets } from '../load/remote-sockets.ts'
import { runSockets } from '../load/sockets.ts'
import { startService, withServers } from '../processes.ts'
import { bearer, rawRequest } from '../requests.ts'
import type { Scenario } from '../scenario.ts'
import { signInRequest, signUpOne } from '../sign-in.ts'
import { quantile, spread } from '../statistics.ts'

const USERS = 1_000
const READS = 2_000

/** Sign-ins per second: ten times what two cores can hash. */
const SIGN_INS = 2_000
const CONNECTIONS = 256

/**
 * The flood has a generator of its own: in the process of the reads it would delay their latencies itself. On two processors both
 * generators still compete with the service, so the p99 depends on the machine; the delay of the event loop is its own.
 */
export const signInFlood: Scenario = {
  name: 'sign-in-flood',
  title: 'GET /account at 2,000/s while sign-ins arrive at 2,000/s, ten times what can be hashed',
  run: async bench => {
    const store = await bench.store(USERS)
    const requests = (await store.tokens(USERS)).map(token =>
      rawRequest({ method: 'GET', path: '/account', headers: bearer(token) }),
    )
    return withServers([() => startService(store)], async server => {
      await signUpOne(server)
      let turn = 0
      const next = (): string => {
        turn = (turn + 1) % requests.length
        return requests[turn] ?? ''
      }
      const reads = async () => {
        await server.ask('watchDelay')
        const { latencies } = await runSockets({
          url: server.url,
          connections: 64,
          seconds: bench.seconds,
          rate: READS,
          next,
        })
        const delay = await server.ask('delay')
        if (latencies.size !== 1) throw new Error(`reads had status ${[...latencies.keys()]}`)
        const p99 = quantile(latencies.get(200) ?? [], 0.99)
        return { p99, delay }
      }
      const { url } = server
      const { seconds } = bench
      const generator = new RemoteSockets()
      const flood = () =>
        generator.run({ url, connections: CONNECTIONS, rate: SIGN_INS, seconds, request: signInRequest() })
      // Compiles the code.
      await Promise.all([reads(), flood()])
      const samples = []
      for (let round = 0; round < bench.rounds; round += 1) {
        const alone = await reads()
        const [during, latencies] = await Promise.all([reads(), flood()])
        const refused = latencies.get(503) ?? []
        samples.push({ alone, during, refused: quantile(refused, 0.99), count: refused.length })
      }
      await generator.stop()
      return [
        {
          what: 'p99 of reads, during ÷ alone',
          value: spread(samples.map(({ alone, during }) => during.p99 / alone.p99)),
          unit: '×',
          target: { atMost: 2 },
        },
        {
          what: 'p99 of refused sign-ins',
          value: spread(samples.map(({ refused }) => refused)),
          unit: 'ms',
          target: { atMost: 50 },
        },
        { what: 'p99 of reads alone', value: spread(samples.map(({ alone }) => alone.p99)), unit: 'ms' },
        { what: 'p99 of reads during', value: spread(samples.map(({ during }) => during.p99)), unit: 'ms' },
        {
          what: 'p99 of event-loop delay alone',
          value: spread(samples.map(({ alone }) => alone.delay)),
          unit: 'ms',
        },
        {
          what: 'p99 of event-loop delay during',
          value: spread(samples.map(({ during }) => during.delay)),
          unit: 'ms',
        },
        {
          what: 'refused sign-ins',
          value: spread(samples.map(({ count }) => count / bench.seconds)),
          unit: '/s',
        },
      ]
    })
  },
}
