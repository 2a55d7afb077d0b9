import { withServers } from '../processes.ts'
import { finding, type Scenario } from '../scenario.ts'
import { startService } from '../stores.ts'

const USERS = 1_000_000

export const startUp: Scenario = {
  name: 'start-up',
  title: 'From the start of the process to its first response, 1,000,000 users in the store',
  async run(bench) {
    const store = await bench.store(USERS)
    const measure = (): Promise<number> => {
      const begin = performance.now()
      return withServers([() => startService(store)], async ({ url }) => {
        const { status } = await fetch(`${url}/health`)
        if (status !== 200) throw new Error(`The first response was ${status}`)
        return (performance.now() - begin) / 1_000
      })
    }
    // The first start fills the compile cache.
    await measure()
    const seconds: number[] = []
    while (seconds.length < bench.rounds) seconds.push(await measure())
    return [finding('time to first response', seconds, 's', { atMost: 0.5 })]
  },
}
