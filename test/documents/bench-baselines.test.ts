/** The baselines of the bench send what the service sends: else a run ends at the first scenario whose responses differ. */
import t from 'tap'
import { startServer, startService, withServers } from '../../bench/processes.ts'
import { bearer, get, type Requests } from '../../bench/requests.ts'
import { assertSameBytes } from '../../bench/same-bytes.ts'
import { createStore } from '../../bench/stores.ts'
import { ADMIN_KEY } from '../support/build.ts'

const store = await createStore('sqlite', 1)
const [token = ''] = await store.tokens(1)
const account = get('/account', [bearer(token)])

const introspection: Requests = {
  method: 'POST',
  paths: ['/admin/introspect'],
  headers: [{ 'x-admin-key': ADMIN_KEY }],
  bodies: [JSON.stringify({ token })],
  status: 200,
}

const BASELINES: readonly (readonly [name: string, requests: Requests, challenge?: string])[] = [
  ['account', account],
  ['introspection', introspection],
  ['unauthorized', get('/account', [{}], 401), 'Bearer'],
  ['unauthorized', get('/account', [bearer('a.forged.token')], 401), 'Bearer error="invalid_token"'],
]

await withServers([() => startService(store, { ADMIN_KEY })], async service => {
  for (const [name, requests, challenge] of BASELINES) {
    const start = () =>
      startServer(`bench/baselines/${name}.ts`, challenge === undefined ? {} : { CHALLENGE: challenge })
    await t.test(challenge === undefined ? name : `${name}: ${challenge}`, t =>
      withServers([start], baseline => t.resolves(assertSameBytes(service, baseline, requests))),
    )
  }
})
