import { compare, findingsOf } from '../compare.ts'
import { startService, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import type { Scenario } from '../scenario.ts'

const USERS = 1_000_000
const WARM = 10_000

/** A cache for every user, with some room, so that hardly any bucket of its index is full. */
const ALL = { CACHE_SIZE: String(1.1 * USERS) }

/** Tokens in rotation beyond the capacity of the cache, so that nearly every request misses it. */
const UNIFORM = 250_000
const FEW = { CACHE_SIZE: '100000' }

export const millionUsers: Scenario = {
  name: 'million-users',
  title:
    'GET /account, Bearer, 1,000,000 users in rotation: all of them cached, and 250,000 with CACHE_SIZE=100000',
  run: async bench => {
    const [many, few] = [await bench.store(USERS), await bench.store(WARM)]
    const requestsOf = (tokens: readonly string[]) => get('/account', tokens.map(bearer))
    const warm = requestsOf(await few.tokens(WARM))
    const all = requestsOf(await many.tokens(USERS))
    const uniform = requestsOf(await many.tokens(UNIFORM))
    const cached = await withServers(
      [() => startService(many, ALL), () => startService(few)],
      async (ofMany, ofFew) => {
        const { cpuRatio, sides } = await compare(
          bench,
          { name: 'warm', server: ofFew, requests: warm },
          { name: 'all cached', server: ofMany, requests: all },
        )
        return [
          {
            what: 'CPU, 1,000,000 cached users ÷ 10,000 users',
            value: cpuRatio,
            unit: '×',
            target: { atMost: 1.5 },
          },
          ...findingsOf('all cached', sides[1]),
          ...findingsOf('10,000 users', sides[0]),
        ]
      },
    )
    const missed = await withServers(
      [() => startService(many, FEW), () => startService(few)],
      async (ofMany, ofFew) => {
        const { cpuRatio, sides } = await compare(
          bench,
          { name: 'warm', server: ofFew, requests: warm },
          { name: 'not cached', server: ofMany, requests: uniform },
        )
        return [
          {
            what: 'CPU, beyond the capacity ÷ 10,000 users',
            value: cpuRatio,
            unit: '×',
            target: { atMost: 2 },
          },
          ...findingsOf('beyond the capacity', sides[1]),
        ]
      },
    )
    return [...cached, ...missed]
  },
}
