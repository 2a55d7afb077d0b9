import { compare, findingsOf, sample } from '../compare.ts'
import { startServer, startService, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import { type Scenario, single } from '../scenario.ts'

const USERS = 100_000

export const flush: Scenario = {
  name: 'flush',
  title: 'Last requests written each second, 100,000 users in rotation: every request is another user’s',
  run: async bench => {
    const store = await bench.store(USERS)
    const other = await bench.store(USERS + 1)
    const sides = [
      { name: 'with flush', requests: get('/account', (await store.tokens(USERS)).map(bearer)) },
      { name: 'without flush', requests: get('/account', (await other.tokens(USERS)).map(bearer)) },
    ] as const
    const without = () => startServer('bench/variants/without-flush.ts', other.environment)
    return withServers([() => startService(store), without], async (flushing, discarding) => {
      const first = { ...sides[0], server: flushing }
      const result = await compare(bench, { ...sides[1], server: discarding }, first)
      await flushing.ask('watchDelay')
      await sample(bench.generator, first, bench.seconds)
      const delay = await flushing.ask('delay')
      return [
        {
          what: 'CPU, with flush ÷ without',
          value: result.cpuRatio,
          unit: '×',
          target: { atMost: 1.05 },
        },
        {
          what: 'event-loop delay, p99',
          value: single(delay),
          unit: 'ms',
          target: { atMost: 5 },
        },
        ...findingsOf('with flush', result.sides[1]),
        ...findingsOf('without flush', result.sides[0]),
      ]
    })
  },
}
