import { versus } from '../compare.ts'
import { startServer, startService, withServers } from '../processes.ts'
import { get } from '../requests.ts'
import type { Scenario } from '../scenario.ts'

export const health: Scenario = {
  name: 'health',
  title: 'GET /health, no token',
  run: async bench => {
    const store = await bench.store(10_000)
    return withServers(
      [() => startService(store), () => startServer('bench/baselines/health.ts')],
      (service, baseline) =>
        versus(bench, {
          service,
          baseline,
          baselineName: 'bare Fastify',
          requests: get('/health'),
          atLeast: 0.97,
        }),
    )
  },
}
