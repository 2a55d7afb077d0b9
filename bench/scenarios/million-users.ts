import { compare, type Side } from '../compare.ts'
import { withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import type { Bench, Finding, Scenario } from '../scenario.ts'
import { startService } from '../stores.ts'

const USERS = 1_000_000
const WARM = 10_000

interface Kind {
  readonly name: string
  /** Tokens in rotation. */
  readonly tokens: number
  readonly cacheSize: number
  readonly atMost: number
}

const KINDS: readonly Kind[] = [
  // With some room, so that hardly any bucket of the index is full.
  { name: '1,000,000 cached users', tokens: USERS, cacheSize: 1.1 * USERS, atMost: 1.5 },
  // Beyond the capacity of the cache, so that nearly every request misses it.
  { name: 'beyond the capacity', tokens: 250_000, cacheSize: 100_000, atMost: 2 },
]

const besideFew = async (
  bench: Bench,
  { name, tokens, cacheSize, atMost }: Kind,
): Promise<readonly Finding[]> => {
  const [many, few] = [await bench.store(USERS), await bench.store(WARM)]
  const requests = get('/account', (await many.tokens(tokens)).map(bearer))
  const warm = get('/account', (await few.tokens(WARM)).map(bearer))
  const env = { CACHE_SIZE: String(cacheSize) }
  return withServers([() => startService(many, env), () => startService(few)], (ofMany, ofFew) => {
    const first: Side = { name: '10,000 users', server: ofFew, requests: warm }
    return compare(bench, first, { name, server: ofMany, requests }, { cpu: { atMost } })
  })
}

export const millionUsers: Scenario = {
  name: 'million-users',
  title:
    'GET /account, Bearer, 1,000,000 users in rotation: all of them cached, and 250,000 with CACHE_SIZE=100000',
  async run(bench) {
    const findings: Finding[] = []
    for (const kind of KINDS) findings.push(...(await besideFew(bench, kind)))
    return findings
  },
}
