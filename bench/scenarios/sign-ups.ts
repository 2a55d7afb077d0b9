import { randomBytes } from 'node:crypto'
import { runSockets } from '../load/sockets.ts'
import { startServer, withServers } from '../processes.ts'
import { rawRequest } from '../requests.ts'
import type { Scenario } from '../scenario.ts'
import { quantile, spread } from '../statistics.ts'

const CONNECTIONS = 128

/** The request that signs up another user. */
export const signUp = (): string => {
  const name = randomBytes(8).toString('hex')
  const body = {
    email: `${name}@example.com`,
    password: `pass phrase ${randomBytes(8).toString('hex')}`,
    firstName: name,
  }
  return rawRequest({ method: 'POST', path: '/account/sign-up', headers: {}, body: JSON.stringify(body) })
}

export const signUps: Scenario = {
  name: 'sign-ups',
  title: 'Sign-ups, each on disk before its response, the hash replaced by a constant',
  run: async bench => {
    const { rounds, seconds } = bench
    const { environment } = await bench.emptyStore()
    const variant = () => startServer('bench/variants/constant-hash.ts', environment)
    return withServers([variant], async server => {
      const load = { url: server.url, connections: CONNECTIONS, seconds, next: signUp }
      await runSockets({ ...load, seconds: 2 })
      const samples = []
      for (let round = 0; round < rounds; round += 1) {
        await server.ask('watchDelay')
        const { latencies, total, seconds: took } = await runSockets(load)
        const created = latencies.get(201) ?? []
        if (created.length < total) throw new Error(`sign-ups had status ${[...latencies.keys()]}`)
        samples.push({
          rate: total / took,
          p99: quantile(created, 0.99),
          delay: await server.ask('delay'),
        })
      }
      return [
        {
          what: 'sign-ups',
          value: spread(samples.map(({ rate }) => rate)),
          unit: '/s',
          target: { atLeast: 5_000 },
        },
        {
          what: 'event-loop delay, p99',
          value: spread(samples.map(({ delay }) => delay)),
          unit: 'ms',
          target: { atMost: 10 },
        },
        { what: 'p99', value: spread(samples.map(({ p99 }) => p99)), unit: 'ms' },
      ]
    })
  },
}
