/** When a session ends (DESIGN §5), when a key does, and what every identified request leaves behind (§5.1.2). */
import { join } from 'node:path'
import t from 'tap'
import {
  accountStatus,
  asAdmin,
  bearer,
  build,
  cookie,
  manualClock,
  PASSWORD,
  type SignedUp,
  signIn,
  signUp,
  temporaryFolder,
  updateUser,
} from './support/build.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

const clock = manualClock()
const app = await build(t, { clock: clock.now, env: { SESSION_LIFETIME: '30d', SESSION_IDLE: '10m' } })

t.test('a session ends at its lifetime, however busy it is (DESIGN §5)', async t => {
  const clock = manualClock()
  const env = { SESSION_LIFETIME: '1h', SESSION_IDLE: '10m' }
  const app = await build(t, { clock: clock.now, env })
  const { token, email } = await signUp(app)
  for (let minute = 0; minute < 54; minute += 9) {
    t.equal(await accountStatus(app, token), 200, `after ${minute} minutes`)
    clock.advance(9 * MINUTE)
  }
  t.equal(await accountStatus(app, token), 200, 'after 54 minutes')
  const second = (await signIn(app, email)).json().accessToken
  clock.advance(5 * MINUTE)
  t.equal(await accountStatus(app, token), 200, 'after 59 minutes')
  clock.advance(MINUTE - 1)
  t.equal(await accountStatus(app, token), 200, 'a millisecond before the end')
  clock.advance(1)
  t.equal(await accountStatus(app, token), 401, 'at the end')
  t.equal(await accountStatus(app, token), 401, 'and from then on')
  t.equal((await app.inject({ url: '/health', headers: bearer(token) })).statusCode, 200)
  t.equal(await accountStatus(app, second), 200, 'a second session of the user has a life of its own')
})

t.test('a session ends when it was idle too long (DESIGN §5)', async t => {
  const never = await signUp(app)
  const once = await signUp(app)
  t.equal(await accountStatus(app, once.token), 200)
  clock.advance(10 * MINUTE + SECOND)
  t.equal(await accountStatus(app, never.token), 401, 'never used: idle since sign-up')
  t.equal(await accountStatus(app, once.token), 401, 'used once, remembered, idle')
  t.equal(await accountStatus(app, once.token), 401, 'an attempt does not revive it')
})

t.test(
  'every request pushes the idle end on, on public and admin routes too (DESIGN §5, §5.1.2)',
  async t => {
    const clock = manualClock()
    const env = { SESSION_LIFETIME: '30d', SESSION_IDLE: '10m' }
    const app = await build(t, { clock: clock.now, env })
    const user = await signUp(app)
    for (const url of ['/account', '/health', '/users', '/admin/users', '/ready', '/account']) {
      clock.advance(10 * MINUTE - SECOND)
      const headers = url.startsWith('/admin') ? { ...bearer(user.token), ...asAdmin } : bearer(user.token)
      t.equal((await app.inject({ url, headers })).statusCode, 200, url)
    }
  },
)

t.test('a change of the user takes nothing from the idle time of a session (DESIGN §5)', async t => {
  const user = await signUp(app)
  for (let round = 0; round < 3; round += 1) {
    clock.advance(6 * MINUTE)
    t.equal(await accountStatus(app, user.token), 200, 'within the idle time')
    const changed = await updateUser(app, user.id, { firstName: `Name ${round}` })
    t.equal(changed.statusCode, 200)
  }
})

t.test('disabling ends every session at once, and enabling revives none (DESIGN §4, §5)', async t => {
  const user = await signUp(app)
  const bystander = await signUp(app)
  const second = (await signIn(app, user.email)).json().accessToken
  const unseen = (await signIn(app, user.email)).json().accessToken
  t.equal(await accountStatus(app, user.token), 200)
  t.equal(await accountStatus(app, second), 200)
  t.equal((await updateUser(app, user.id, { disabled: true })).statusCode, 200)
  const old = [user.token, second, unseen]
  for (const token of old) {
    t.equal(await accountStatus(app, token), 401, 'disabled')
    t.equal((await app.inject({ url: '/account', headers: cookie(token) })).statusCode, 401, 'by cookie')
    t.equal((await app.inject({ url: '/health', headers: bearer(token) })).statusCode, 200, 'public (§5.1.3)')
  }
  t.equal((await signIn(app, user.email)).statusCode, 403)
  t.equal((await signIn(app, user.email, 'not the pass phrase')).statusCode, 401)
  t.equal((await updateUser(app, user.id, { disabled: false })).statusCode, 200)
  for (const token of old) t.equal(await accountStatus(app, token), 401, 'enabled again')
  const fresh = (await signIn(app, user.email)).json().accessToken
  t.equal(await accountStatus(app, fresh), 200)
  t.equal(await accountStatus(app, bystander.token), 200, 'nobody else was touched')
})

t.test('tokens of the previous secret count while it is configured (DESIGN §5)', async t => {
  const DATABASE_URL = `sqlite:${join(temporaryFolder(t), 'rotation.db')}`
  const [one, two] = ['1'.repeat(40), '2'.repeat(40)]
  const kid = (token: string) =>
    JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid
  const before = await build(t, { env: { DATABASE_URL, JWT_SECRET: one } })
  const user = await signUp(before)
  await before.close()
  const during = await build(t, { env: { DATABASE_URL, JWT_SECRET: two, JWT_SECRET_PREVIOUS: one } })
  t.equal(await accountStatus(during, user.token), 200)
  const next = (await signIn(during, user.email)).json().accessToken
  t.equal(await accountStatus(during, next), 200)
  t.not(kid(next), kid(user.token), 'new tokens are signed by the new key')
  await during.close()
  const after = await build(t, { env: { DATABASE_URL, JWT_SECRET: two } })
  t.equal(await accountStatus(after, user.token), 401)
  t.equal(await accountStatus(after, next), 200)
})

t.test('an identified request is noted on every route, and outlives a stop (§5.1.2, DESIGN §6)', async t => {
  const clock = manualClock()
  const DATABASE_URL = `sqlite:${join(temporaryFolder(t), 'moments.db')}`
  const app = await build(t, { clock: clock.now, env: { DATABASE_URL } })
  const target = await signUp(app)
  const credentials = { email: target.email, password: PASSWORD }
  const id = target.id
  const requests = [
    { url: '/health', status: 200 },
    { url: '/ready', status: 200 },
    { url: '/account', status: 200 },
    { url: '/account', method: 'HEAD', status: 200 },
    { url: '/users', status: 200 },
    { url: '/account', method: 'PUT', payload: { firstName: 'Ada' }, status: 200 },
    { url: '/account', method: 'PUT', payload: { firstName: 5 }, status: 400 },
    { url: '/account/sign-in', method: 'POST', payload: credentials, status: 200 },
    { url: '/account/sign-in', method: 'POST', payload: {}, status: 400 },
    { url: '/account/sign-up', method: 'POST', payload: credentials, status: 409 },
    { url: '/admin/users', headers: asAdmin, status: 200 },
    { url: '/admin/users', status: 401 },
    { url: `/admin/users/${id}`, method: 'PUT', headers: asAdmin, payload: { firstName: 'Bo' }, status: 200 },
    { url: `/admin/users/${id}`, method: 'PUT', payload: { firstName: 'Bo' }, status: 401 },
  ] as const
  const made: { user: SignedUp; at: string; title: string }[] = []
  for (const { status, ...request } of requests) {
    const user = await signUp(app)
    clock.advance(61 * SECOND)
    const headers = { ...('headers' in request ? request.headers : {}), ...bearer(user.token) }
    const title = `${'method' in request ? request.method : 'GET'} ${request.url} ${status}`
    t.equal((await app.inject({ ...request, headers })).statusCode, status, title)
    made.push({ user, at: new Date(clock.now()).toISOString(), title })
  }
  await app.close()
  const next = await build(t, { clock: clock.now, env: { DATABASE_URL } })
  const { results } = (await next.inject({ url: '/admin/users?limit=100', headers: asAdmin })).json()
  const moments = new Map<string, string>(
    results.map((user: { id: string; lastRequestAt: string }) => [user.id, user.lastRequestAt]),
  )
  for (const { user, at, title } of made) t.equal(moments.get(user.id), at, title)
  t.equal(moments.get(target.id), null, 'null until the first identified request')
})

t.test('every view of an account shows the last request at once (DESIGN §4, §6)', async t => {
  const user = await signUp(app)
  clock.advance(MINUTE)
  const at = new Date(clock.now()).toISOString()
  t.equal((await app.inject({ url: '/account', headers: bearer(user.token) })).json().lastRequestAt, at)
  clock.advance(MINUTE)
  const list = await app.inject({ url: `/admin/users?email=${user.email}`, headers: asAdmin })
  t.equal(list.json().results[0].lastRequestAt, at, 'the admin list')
  t.equal(
    (await updateUser(app, user.id, { lastName: 'Lovelace' })).json().lastRequestAt,
    at,
    'PUT by an admin',
  )
  t.equal((await signIn(app, user.email)).json().user.lastRequestAt, at, 'sign-in')
})

t.test('a request that identifies nobody is noted for nobody (§5.1.2)', async t => {
  const user = await signUp(app)
  await app.inject({ url: '/account', headers: bearer(`${user.token}x`) })
  await app.inject({ url: '/admin/users', headers: asAdmin })
  const list = await app.inject({ url: `/admin/users?email=${user.email}`, headers: asAdmin })
  t.equal(list.json().results[0].lastRequestAt, null)
})
