import { startService } from '../processes.ts'
import type { Scenario } from '../scenario.ts'
import { spread } from '../statistics.ts'

const USERS = 1_000_000

export const startUp: Scenario = {
  name: 'start-up',
  title: 'From the start of the process to its first response, 1,000,000 users in the store',
  run: async bench => {
    const store = await bench.store(USERS)
    const times = []
    // The first start fills the compile cache and is not counted.
    for (let round = 0; round <= bench.rounds; round += 1) {
      const begin = performance.now()
      const server = await startService(store)
      try {
        const { status } = await fetch(`${server.url}/health`)
        if (status !== 200) throw new Error(`The first response was ${status}`)
        if (round > 0) times.push((performance.now() - begin) / 1_000)
      } finally {
        await server.stop()
      }
    }
    return [{ what: 'time to first response', value: spread(times), unit: 's', target: { atMost: 0.5 } }]
  },
}
