import { versus } from '../compare.ts'
import { startServer, startService, withServers } from '../processes.ts'
import { bearer, cookie, get } from '../requests.ts'
import type { Scenario } from '../scenario.ts'

const USERS = 10_000

interface Kind {
  readonly name: string
  readonly title: string
  readonly baseline: string
  readonly baselineName: string
  readonly headers: (token: string) => Readonly<Record<string, string>>
  readonly atLeast: number
}

const scenario = ({ name, title, baseline, baselineName, headers, atLeast }: Kind): Scenario => ({
  name,
  title,
  run: async bench => {
    const store = await bench.store(USERS)
    const requests = get('/account', (await store.tokens(USERS)).map(headers))
    return withServers(
      [() => startService(store), () => startServer(`bench/baselines/${baseline}`)],
      (service, baseline) => versus(bench, { service, baseline, baselineName, requests, atLeast }),
    )
  },
})

export const account = scenario({
  name: 'account',
  title: 'GET /account, Bearer, 10,000 users in rotation',
  baseline: 'account.ts',
  baselineName: 'bare Fastify',
  headers: bearer,
  atLeast: 0.95,
})

export const accountCookie = scenario({
  name: 'account-cookie',
  title: 'GET /account, cookie, 10,000 users in rotation',
  baseline: 'account.ts',
  baselineName: 'bare Fastify',
  headers: cookie,
  atLeast: 0.93,
})
