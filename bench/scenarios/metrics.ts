import { compare, findingsOf } from '../compare.ts'
import { startServer, startService, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import type { Scenario } from '../scenario.ts'

const USERS = 10_000

export const metrics: Scenario = {
  name: 'metrics',
  title:
    'Metrics, which are always counted: GET /account, 10,000 users in rotation, beside the service without them',
  run: async bench => {
    const store = await bench.store(USERS)
    // A database of its own: each process would empty its caches when the other one writes last requests.
    const other = await bench.store(USERS + 1)
    const requests = get('/account', (await store.tokens(USERS)).map(bearer))
    const requestsOfOther = get('/account', (await other.tokens(USERS)).map(bearer))
    const without = () => startServer('bench/variants/without-metrics.ts', other.environment)
    return withServers([() => startService(store), without], async (counting, silent) => {
      const { sides, cpuRatio } = await compare(
        bench,
        { name: 'without metrics', server: silent, requests: requestsOfOther },
        { name: 'with metrics', server: counting, requests },
      )
      return [
        { what: 'CPU, with metrics ÷ without', value: cpuRatio, unit: '×', target: { atMost: 1.02 } },
        ...findingsOf('with metrics', sides[1]),
        ...findingsOf('without metrics', sides[0]),
      ]
    })
  },
}
