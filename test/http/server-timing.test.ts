/** `Server-Timing` shows no time from which a client could learn more than from the response (docs/design.md, "Observability"). */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { openSqliteStorage } from '#core/store/sqlite'
import {
  ADMIN_KEY,
  asAdmin,
  bearer,
  build,
  freshEmail,
  PASSWORD,
  signIn,
  signUp,
  temporaryFolder,
  updateUser,
} from '../support/build.ts'
import { liveRoutes } from '../support/routes.ts'
import { pooledWriter } from '../support/writer-pool.ts'

/** Milliseconds. */
const DELAY = 50

const ON = { env: { SERVER_TIMING: 'on', MAIL_URL: 'off' } }

/** The durations in a header by name, in milliseconds. */
const durations = (header: unknown): Record<string, number> =>
  Object.fromEntries(
    String(header)
      .split(', ')
      .map(metric => {
        const [, name = '', duration] = /^([a-z]+);dur=(\d+\.\d\d)$/.exec(metric) ?? []
        return [name, Number(duration)]
      }),
  )

t.test('authenticated requests have the total and its parts', async t => {
  const app = await build(t, ON)
  const { token, id } = await signUp(app)
  const requests = [
    { url: '/account', headers: bearer(token) },
    { url: '/users', headers: bearer(token) },
    { method: 'PUT', url: '/account', headers: bearer(token), payload: { firstName: 'Ada' } },
    { url: `/admin/users/${id}`, headers: asAdmin },
    { url: '/admin/users/export', headers: asAdmin },
  ] as const
  for (const { url, ...options } of requests) {
    const response = await app.inject({ url, ...options })
    t.equal(response.statusCode, 200, url)
    const { total = 0, ...parts } = durations(response.headers['server-timing'])
    t.strictSame(Object.keys(parts), ['auth', 'body', 'handler'], url)
    const sum = Object.values(parts).reduce((all, part) => all + part, 0)
    // Each is rounded.
    t.ok(Math.abs(total - sum) < 0.03, `${url}: ${total} is the sum of its parts`)
  }
  const invalid = await app.inject({ url: '/users?limit=0', headers: bearer(token) })
  t.equal(invalid.statusCode, 400)
  t.strictSame(
    Object.keys(durations(invalid.headers['server-timing'])),
    ['total', 'auth'],
    'without the phases that were not reached',
  )
})

t.test('public routes, routes with a rate limit and anonymous requests have none', async t => {
  const app = await build(t, ON)
  const { email, token } = await signUp(app)
  const headers = { ...bearer(token), ...asAdmin }
  for (const { method, url, gate, rateLimit } of liveRoutes(app)) {
    const path = url.replace(/:\w+/g, '0')
    const request = { method: method as 'GET', url: path, ...(method !== 'GET' && { payload: {} }) }
    const anonymous = await app.inject(request)
    t.notOk('server-timing' in anonymous.headers, `anonymous ${method} ${url}`)
    const forged = { ...bearer('x.y.z'), 'x-admin-key': ADMIN_KEY.toUpperCase() }
    const rejected = await app.inject({ ...request, headers: forged })
    t.notOk('server-timing' in rejected.headers, `forged ${method} ${url}`)
    if (gate !== undefined && !rateLimit) continue
    const response = await app.inject({ ...request, headers })
    t.notOk('server-timing' in response.headers, `${method} ${url}`)
  }
  for (const [address, password] of [
    [email, PASSWORD],
    [email, 'a wrong pass phrase'],
    [freshEmail(), PASSWORD],
  ] as const)
    t.notOk('server-timing' in (await signIn(app, address, password)).headers, 'sign-in')
  t.notOk('server-timing' in (await app.inject({ url: '/nope', headers })).headers, '404')
})

t.test('it is off by default', async t => {
  const app = await build(t)
  const { token } = await signUp(app)
  const response = await app.inject({ url: '/account', headers: bearer(token) })
  t.equal(response.statusCode, 200)
  t.notOk('server-timing' in response.headers)
})

t.test('the time of authentication is in auth', async t => {
  const store = await openSqliteStorage(join(temporaryFolder(t), 'slow.db'), [], pooledWriter)
  const find = async (id: string) => {
    await delay(DELAY)
    return store.sessions.find(id)
  }
  const app = await build(t, { ...ON, storage: { ...store, sessions: { ...store.sessions, find } } })
  const { token, id } = await signUp(app)
  await updateUser(app, id, { firstName: 'Uncached' })
  const response = await app.inject({ url: '/account', headers: bearer(token) })
  const { auth = 0, total = 0 } = durations(response.headers['server-timing'])
  // A timer may fire a millisecond early.
  t.ok(auth > DELAY - 2 && total >= auth, `auth ${auth} of ${total}`)
})
