import { compare, findingsOf } from '../compare.ts'
import { betterAuthPeer } from '../peers/start.ts'
import { startService, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import type { Scenario } from '../scenario.ts'

const USERS = 1_000

export const betterAuth: Scenario = {
  name: 'better-auth',
  title: 'GET /account beside the session read of better-auth, both with Bearer tokens on SQLite',
  run: async bench => {
    const peer = await betterAuthPeer(USERS)
    const store = await bench.store(USERS)
    return withServers([() => startService(store), peer.start], async (service, baseline) => {
      const tokens = await store.tokens(USERS)
      const result = await compare(
        bench,
        { name: 'service', server: service, requests: get('/account', tokens.map(bearer)) },
        {
          name: 'better-auth',
          server: baseline,
          requests: get('/api/auth/get-session', peer.tokens().map(bearer)),
        },
      )
      return [
        { what: 'CPU, better-auth ÷ service', value: result.cpuRatio, unit: '×' },
        { what: 'requests/s, service ÷ better-auth', value: result.throughputRatio, unit: '×' },
        ...findingsOf('service', result.sides[0]),
        ...findingsOf('better-auth', result.sides[1]),
      ]
    })
  },
}
