import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compare, findingsOf } from '../compare.ts'
import { installPeers } from '../peers/install.ts'
import { startServer, startService, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import type { Scenario } from '../scenario.ts'
import { temporaryFolder } from '../workspace.ts'

const USERS = 1_000

export const betterAuth: Scenario = {
  name: 'better-auth',
  title: 'GET /account beside the session read of better-auth, both with Bearer tokens on SQLite',
  run: async bench => {
    await installPeers()
    const store = await bench.store(USERS)
    const folder = temporaryFolder()
    const tokensFile = join(folder, 'tokens')
    const peer = {
      DATABASE: join(folder, 'peer.db'),
      USERS: String(USERS),
      TOKENS: tokensFile,
    }
    return withServers(
      [() => startService(store), () => startServer('bench/peers/better-auth.js', peer)],
      async (service, baseline) => {
        const tokens = await store.tokens(USERS)
        const tokensOfPeer = readFileSync(tokensFile, 'utf8').split('\n')
        const result = await compare(
          bench,
          { name: 'service', server: service, requests: get('/account', tokens.map(bearer)) },
          {
            name: 'better-auth',
            server: baseline,
            requests: get('/api/auth/get-session', tokensOfPeer.map(bearer)),
          },
        )
        return [
          { what: 'CPU, better-auth ÷ service', value: result.cpuRatio, unit: '×' },
          { what: 'requests/s, service ÷ better-auth', value: result.throughputRatio, unit: '×' },
          ...findingsOf('service', result.sides[0]),
          ...findingsOf('better-auth', result.sides[1]),
        ]
      },
    )
  },
}
