import { compare } from '../compare.ts'
import { betterAuthPeer } from '../peers/start.ts'
import { withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import type { Scenario } from '../scenario.ts'
import { startService } from '../stores.ts'

const USERS = 1_000

export const betterAuth: Scenario = {
  name: 'better-auth',
  title: 'GET /account beside the session read of better-auth, both with Bearer tokens on SQLite',
  skipReason: ({ engine }) => (engine === 'postgres' ? 'its peer is set up on SQLite' : undefined),
  async run(bench) {
    const peer = await betterAuthPeer(USERS)
    const store = await bench.store(USERS)
    const requests = get('/account', (await store.tokens(USERS)).map(bearer))
    return withServers([() => startService(store), peer.start], (service, other) => {
      const requestsOfOther = get('/api/auth/get-session', peer.tokens().map(bearer))
      return compare(
        bench,
        { name: 'service', server: service, requests },
        { name: 'better-auth', server: other, requests: requestsOfOther },
      )
    })
  },
}
