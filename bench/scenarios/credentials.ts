/** Other credentials than the HS256 access token of a session, compared with it; and introspection. */
import { newPrivateKey } from '#core/auth/private-key'
import { compare, findingsOf, versus } from '../compare.ts'
import { type Server, startServer, startService, withServers } from '../processes.ts'
import { bearer, get, type Requests } from '../requests.ts'
import type { Bench, Finding, Scenario } from '../scenario.ts'
import { createStore } from '../stores.ts'

const USERS = 10_000

const ADMIN_KEY = 'bench-admin-key-0123456789-abcdef'

interface Sides {
  readonly name: string
  readonly server: Server
  /** Default: the same. */
  readonly sessionServer?: Server
  readonly requests: Requests
  readonly sessionRequests: Requests
  readonly atLeast: number
}

/** Compares requests with GET /account of sessions. */
const versusSessions = async (
  bench: Bench,
  { name, server, sessionServer = server, requests, sessionRequests, atLeast }: Sides,
): Promise<readonly Finding[]> => {
  const { sides, throughputRatio, cpuRatio } = await compare(
    bench,
    { name, server, requests },
    { name: 'session', server: sessionServer, requests: sessionRequests },
  )
  const target = { target: { atLeast } }
  return [
    { what: `CPU, session ÷ ${name}`, value: cpuRatio, unit: '', ...target },
    { what: `requests/s, ${name} ÷ session`, value: throughputRatio, unit: '', ...target },
    ...findingsOf(name, sides[0]),
    ...findingsOf('session', sides[1]),
  ]
}

export const apiKey: Scenario = {
  name: 'api-key',
  title: 'GET /account, API keys beside sessions, 10,000 users in rotation',
  run: async bench => {
    const store = await bench.store(USERS)
    const [tokens, apiKeys] = [await store.tokens(USERS), await store.apiKeys(USERS)]
    return withServers([() => startService(store)], server =>
      versusSessions(bench, {
        name: 'API key',
        server,
        atLeast: 0.97,
        requests: get('/account', apiKeys.map(bearer)),
        sessionRequests: get('/account', tokens.map(bearer)),
      }),
    )
  },
}

export const eddsa: Scenario = {
  name: 'eddsa',
  title: 'GET /account, EdDSA access tokens beside HS256, 10,000 users in rotation',
  run: async bench => {
    // A store of its own for each service: on one, each would evict its cache when the other writes last requests.
    const store = await createStore(bench.engine, USERS)
    const sessionStore = await createStore(bench.engine, USERS)
    const env = { JWT_ALGORITHM: 'EdDSA', JWT_PRIVATE_KEY: newPrivateKey('EdDSA') }
    const requests = get('/account', (await store.tokens(USERS, env)).map(bearer))
    const sessionRequests = get('/account', (await sessionStore.tokens(USERS)).map(bearer))
    return withServers(
      [() => startService(store, env), () => startService(sessionStore)],
      (server, sessionServer) =>
        versusSessions(bench, {
          name: 'EdDSA',
          server,
          sessionServer,
          atLeast: 0.98,
          requests,
          sessionRequests,
        }),
    )
  },
}

export const introspection: Scenario = {
  name: 'introspection',
  title: 'POST /admin/introspect, 10,000 users in rotation',
  run: async bench => {
    const store = await bench.store(USERS)
    const requests: Requests = {
      method: 'POST',
      paths: ['/admin/introspect'],
      headers: [{ 'x-admin-key': ADMIN_KEY }],
      bodies: (await store.tokens(USERS)).map(token => JSON.stringify({ token })),
      status: 200,
    }
    return withServers(
      [() => startService(store, { ADMIN_KEY }), () => startServer('bench/baselines/introspection.ts')],
      (service, baseline) =>
        versus(bench, { service, baseline, baselineName: 'bare Fastify', requests, atLeast: 0.8 }),
    )
  },
}
