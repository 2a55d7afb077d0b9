import { compare, findingsOf } from '../compare.ts'
import { startService, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import type { Scenario } from '../scenario.ts'

const USERS = 1_000_000
const WARM = 10_000

/** More than twice the capacity of the cache, so that every request misses it. */
const UNIFORM = 250_000

export const millionUsers: Scenario = {
  name: 'million-users',
  title: 'GET /account, Bearer, 1,000,000 users, 250,000 in rotation: more than the caches hold',
  run: async bench => {
    const [many, few] = [await bench.store(USERS), await bench.store(WARM)]
    const uniform = get('/account', (await many.tokens(UNIFORM)).map(bearer))
    const warm = get('/account', (await few.tokens(WARM)).map(bearer))
    return withServers([() => startService(many), () => startService(few)], async (ofMany, ofFew) => {
      const { cpuRatio, sides } = await compare(
        bench,
        { name: 'warm', server: ofFew, requests: warm },
        { name: 'uniform', server: ofMany, requests: uniform },
      )
      return [
        { what: 'CPU, uniform ÷ 10,000 users', value: cpuRatio, unit: '×', target: { atMost: 2.5 } },
        ...findingsOf('uniform', sides[1]),
        ...findingsOf('10,000 users', sides[0]),
      ]
    })
  },
}
