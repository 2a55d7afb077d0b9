import { versus } from '../compare.ts'
import { startServer, startService, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import type { Scenario } from '../scenario.ts'

const USERS = 10_000

export const nodeHttp: Scenario = {
  name: 'node-http',
  title: 'GET /account beside node:http with constant bytes',
  run: async bench => {
    const store = await bench.store(USERS)
    const requests = get('/account', (await store.tokens(USERS)).map(bearer))
    return withServers(
      [() => startService(store), () => startServer('bench/baselines/node-http.ts')],
      (service, baseline) => versus(bench, { service, baseline, baselineName: 'node:http', requests }),
    )
  },
}
