import type { Scenario } from '../scenario.ts'

export const health: Scenario = {
  name: 'health',
  title: 'GET /health, no token',
  yardstick: 'health.ts',
  prepare: async () => ({ requests: { path: '/health', tokens: [] } }),
}
