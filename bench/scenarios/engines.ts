import { compare, findingsOf } from '../compare.ts'
import { startService, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import type { Scenario } from '../scenario.ts'

const USERS = 10_000

/**
 * Requests with cached tokens need no store, so the engine must not matter. The flush once a second runs in PostgreSQL's processes,
 * whose CPU is not counted, but with SQLite in a thread of the service, whose CPU is.
 */
export const engines: Scenario = {
  name: 'engines',
  title: 'Warm GET /account on PostgreSQL beside SQLite, Bearer, 10,000 users in rotation',
  run: async bench => {
    const [shared, embedded] = [await bench.store(USERS, 'postgres'), await bench.store(USERS, 'sqlite')]
    const ofShared = get('/account', (await shared.tokens(USERS)).map(bearer))
    const ofEmbedded = get('/account', (await embedded.tokens(USERS)).map(bearer))
    const starts = [() => startService(shared), () => startService(embedded)]
    return withServers(starts, async (postgres, sqlite) => {
      const { sides, throughputRatio, cpuRatio } = await compare(
        bench,
        { name: 'PostgreSQL', server: postgres, requests: ofShared },
        { name: 'SQLite', server: sqlite, requests: ofEmbedded },
      )
      const target = { atLeast: 0.97 }
      return [
        { what: 'CPU, SQLite ÷ PostgreSQL', value: cpuRatio, unit: '', target },
        { what: 'requests/s, PostgreSQL ÷ SQLite', value: throughputRatio, unit: '', target },
        ...findingsOf('PostgreSQL', sides[0]),
        ...findingsOf('SQLite', sides[1]),
      ]
    })
  },
}
