/** The baselines of the bench send what the service sends: else a run ends at the first scenario whose responses differ. */
import t from 'tap'
import { assertSameBytes } from '../../bench/compare.ts'
import { startServer, withServers } from '../../bench/processes.ts'
import { bearer, get, type Requests } from '../../bench/requests.ts'
import { createStore, startService } from '../../bench/stores.ts'
import { ADMIN_KEY } from '../support/build.ts'

const store = await createStore('sqlite', 1)
const [token = ''] = await store.tokens(1)
const account = get('/account', [bearer(token)])

const introspection: Requests = {
  method: 'POST',
  path: '/admin/introspect',
  headers: [{ 'x-admin-key': ADMIN_KEY }],
  bodies: [JSON.stringify({ token })],
  status: 200,
}

const BASELINES: readonly (readonly [route: string, requests: Requests, challenge?: string])[] = [
  ['account', account],
  ['introspection', introspection],
  ['unauthorized', get('/account', [{}], 401), 'Bearer'],
  ['unauthorized', get('/account', [bearer('a.forged.token')], 401), 'Bearer error="invalid_token"'],
]

await withServers([() => startService(store, { ADMIN_KEY })], async service => {
  for (const [ROUTE, requests, CHALLENGE = ''] of BASELINES) {
    const start = () => startServer('bench/bare-fastify.ts', { ROUTE, CHALLENGE })
    await t.test(`${ROUTE} ${CHALLENGE}`, t =>
      withServers([start], baseline => t.resolves(assertSameBytes(service, baseline, requests))),
    )
  }
})
