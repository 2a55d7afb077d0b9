import { runExpecting } from '../load/sockets.ts'
import { startServer, withServers } from '../processes.ts'
import { signUp } from '../requests.ts'
import { findings, type Scenario } from '../scenario.ts'
import { quantile } from '../statistics.ts'
import { createStore } from '../stores.ts'

const CONNECTIONS = 128

export const signUps: Scenario = {
  name: 'sign-ups',
  title: 'Sign-ups, each on disk before its response, the hash replaced by a constant',
  async run({ engine, rounds, seconds }) {
    const { environment } = await createStore(engine, 0)
    return withServers([() => startServer('bench/constant-hash.ts', environment)], async server => {
      const load = { url: server.url, connections: CONNECTIONS, next: signUp }
      await runExpecting(201, { ...load, seconds: 2 })
      const samples = []
      while (samples.length < rounds) {
        await server.ask('watchDelay')
        const { latencies, rate } = await runExpecting(201, { ...load, seconds })
        samples.push({ rate, p99: quantile(latencies, 0.99), delay: await server.ask('delay') })
      }
      return findings(samples, [
        ['sign-ups', ({ rate }) => rate, '/s', { atLeast: 5_000 }],
        ['event-loop delay, p99', ({ delay }) => delay, 'ms', { atMost: 10 }],
        ['p99', ({ p99 }) => p99, 'ms'],
      ])
    })
  },
}
