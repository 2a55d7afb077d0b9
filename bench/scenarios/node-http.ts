import { compare, findingsOf } from '../compare.ts'
import { startServer, startService, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import { assertSameBytes } from '../same-bytes.ts'
import type { Scenario } from '../scenario.ts'

const USERS = 10_000

export const nodeHttp: Scenario = {
  name: 'node-http',
  title: 'GET /account beside node:http with constant bytes',
  run: async bench => {
    const store = await bench.store(USERS)
    const requests = get('/account', store.tokens(USERS).map(bearer))
    return withServers(
      [() => startService(store), () => startServer('bench/yardsticks/node-http.ts')],
      async (service, yardstick) => {
        await assertSameBytes(service, yardstick, requests)
        const sides = [
          { name: 'service', server: service, requests },
          { name: 'node:http', server: yardstick, requests },
        ] as const
        const result = await compare(bench, ...sides)
        return [
          { what: 'CPU, node:http ÷ service', value: result.cpuRatio, unit: '' },
          ...findingsOf('service', result.sides[0]),
          ...findingsOf('node:http', result.sides[1]),
        ]
      },
    )
  },
}
