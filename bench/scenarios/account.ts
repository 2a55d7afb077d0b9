import { versus } from '../compare.ts'
import { startServer, startService, withServers } from '../processes.ts'
import { bearer, cookie, get } from '../requests.ts'
import type { Scenario } from '../scenario.ts'

const USERS = 10_000

interface Kind {
  readonly name: string
  readonly title: string
  readonly yardstick: string
  readonly yardstickName: string
  readonly headers: (token: string) => Readonly<Record<string, string>>
  readonly atLeast: number
}

const scenario = ({ name, title, yardstick, yardstickName, headers, atLeast }: Kind): Scenario => ({
  name,
  title,
  run: async bench => {
    const store = await bench.store(USERS)
    const requests = get('/account', (await store.tokens(USERS)).map(headers))
    return withServers(
      [() => startService(store), () => startServer(`bench/baselines/${yardstick}`)],
      (service, yardstick) => versus(bench, { service, yardstick, yardstickName, requests, atLeast }),
    )
  },
})

export const account = scenario({
  name: 'account',
  title: 'GET /account, Bearer, 10,000 users in rotation',
  yardstick: 'account.ts',
  yardstickName: 'bare Fastify',
  headers: bearer,
  atLeast: 0.95,
})

export const accountCookie = scenario({
  name: 'account-cookie',
  title: 'GET /account, cookie, 10,000 users in rotation',
  yardstick: 'account.ts',
  yardstickName: 'bare Fastify',
  headers: cookie,
  atLeast: 0.93,
})
