/** Requests of one user each beside bare Fastify, which sends the same bytes: the hot path, and what differs from it by its credential. */
import { API_KEY_PREFIX, KEY_LENGTH } from '#core/auth/opaque-key'
import { assertSameBytes, compare } from '../compare.ts'
import { type Environment, startServer, withServers } from '../processes.ts'
import { bearer, get, type Requests } from '../requests.ts'
import type { Bench, Finding, Scenario } from '../scenario.ts'
import { type Store, startService } from '../stores.ts'

const USERS = 10_000

const ADMIN_KEY = 'bench-admin-key-0123456789-abcdef'

/** Changes the first character of the signature. */
const forge = (token: string): string => {
  const at = token.lastIndexOf('.') + 1
  return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
}

/** A text with the prefix and length of an API key, and a wrong checksum. */
const invent = (token: string): string =>
  API_KEY_PREFIX + token.replaceAll(/[^A-Za-z0-9]/g, '').slice(-(KEY_LENGTH - API_KEY_PREFIX.length))

interface Kind {
  readonly requests: (store: Store) => Promise<Requests>
  /** Settings of the service. */
  readonly env?: Environment
  /** Settings of the baseline. */
  readonly baseline: Environment
  readonly atLeast: number
}

/** The tokens of all users, each as the header fields of a request. */
const read =
  (fieldsOf: (token: string) => Readonly<Record<string, string>>, status = 200) =>
  async (store: Store): Promise<Requests> =>
    get('/account', (await store.tokens(USERS)).map(fieldsOf), status)

const ACCOUNT = { ROUTE: 'account' }
const INVALID = { ROUTE: 'unauthorized', CHALLENGE: 'Bearer error="invalid_token"' }

const KINDS: Readonly<Record<string, Kind>> = {
  cookie: {
    requests: read(token => ({ cookie: `ACCESS_TOKEN=${token}` })),
    baseline: ACCOUNT,
    atLeast: 0.93,
  },
  'API key': {
    requests: async store => get('/account', (await store.apiKeys(USERS)).map(bearer)),
    baseline: ACCOUNT,
    atLeast: 0.95,
  },
  introspection: {
    requests: async store => ({
      method: 'POST',
      path: '/admin/introspect',
      headers: [{ 'x-admin-key': ADMIN_KEY }],
      bodies: (await store.tokens(USERS)).map(token => JSON.stringify({ token })),
      status: 200,
    }),
    env: { ADMIN_KEY },
    baseline: { ROUTE: 'introspection' },
    atLeast: 0.8,
  },
  'no token': {
    requests: async () => get('/account', [{}], 401),
    baseline: { ROUTE: 'unauthorized', CHALLENGE: 'Bearer' },
    atLeast: 0.9,
  },
  'forged token': { requests: read(token => bearer(forge(token)), 401), baseline: INVALID, atLeast: 0.6 },
  'invented API key': {
    requests: read(token => bearer(invent(token)), 401),
    baseline: INVALID,
    atLeast: 0.6,
  },
}

const besideFastify = async (
  bench: Bench,
  { requests: requestsOf, env, baseline, atLeast }: Kind,
): Promise<readonly Finding[]> => {
  const store = await bench.store(USERS)
  const requests = await requestsOf(store)
  return withServers(
    [() => startService(store, env), () => startServer('bench/bare-fastify.ts', baseline)],
    async (service, fastify) => {
      await assertSameBytes(service, fastify, requests)
      return compare(
        bench,
        { name: 'service', server: service, requests },
        { name: 'bare Fastify', server: fastify, requests },
        { cpu: { atLeast }, rate: { atLeast } },
      )
    },
  )
}

export const account: Scenario = {
  name: 'account',
  title: 'GET /account, Bearer, 10,000 users in rotation',
  run: bench => besideFastify(bench, { requests: read(bearer), baseline: ACCOUNT, atLeast: 0.95 }),
}

export const credentials: Scenario = {
  name: 'credentials',
  title:
    'GET /account with other credentials and with refused ones (401), and POST /admin/introspect; 10,000 users in rotation',
  async run(bench) {
    const findings: Finding[] = []
    for (const [name, kind] of Object.entries(KINDS))
      for (const finding of await besideFastify(bench, kind))
        findings.push({ ...finding, what: `${name}: ${finding.what}` })
    return findings
  },
}
