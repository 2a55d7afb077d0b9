/** When sessions expire (docs/design.md, "Tokens and sessions"), and the last request that idle time counts from (§5.1.2). */
import t from 'tap'
import {
  accountStatus,
  asAdmin,
  bearer,
  cookie,
  manualClock,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'

await onEnginesOfRun(t, async (t, { build }) => {
  const SECOND = 1_000
  const MINUTE = 60 * SECOND

  const clock = manualClock()
  const app = await build(t, { clock: clock.now, env: { SESSION_LIFETIME: '30d', SESSION_IDLE: '10m' } })

  t.test('a session expires at the end of its lifetime even if it is used', async t => {
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

  t.test('a session expires after its idle time', async t => {
    const never = await signUp(app)
    const once = await signUp(app)
    t.equal(await accountStatus(app, once.token), 200)
    clock.advance(10 * MINUTE + SECOND)
    t.equal(await accountStatus(app, never.token), 401, 'never used: idle since sign-up')
    t.equal(await accountStatus(app, once.token), 401, 'used once, cached, idle')
    t.equal(await accountStatus(app, once.token), 401, 'an attempt does not revive it')
  })

  t.test('every request extends the idle time, on public and admin routes too (§5.1.2)', async t => {
    const clock = manualClock()
    const env = { SESSION_LIFETIME: '30d', SESSION_IDLE: '10m' }
    const app = await build(t, { clock: clock.now, env })
    const user = await signUp(app)
    for (const url of ['/account', '/health', '/users', '/admin/users', '/ready', '/account']) {
      clock.advance(10 * MINUTE - SECOND)
      const headers = url.startsWith('/admin') ? { ...bearer(user.token), ...asAdmin } : bearer(user.token)
      t.equal((await app.inject({ url, headers })).statusCode, 200, url)
    }
  })

  t.test('a change of the user does not shorten the idle time', async t => {
    const user = await signUp(app)
    for (let round = 0; round < 3; round += 1) {
      clock.advance(6 * MINUTE)
      t.equal(await accountStatus(app, user.token), 200, 'within the idle time')
      const changed = await updateUser(app, user.id, { firstName: `Name ${round}` })
      t.equal(changed.statusCode, 200)
    }
  })

  t.test('disabling ends every session at once; enabling restores none', async t => {
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
      t.equal(
        (await app.inject({ url: '/health', headers: bearer(token) })).statusCode,
        200,
        'public (§5.1.3)',
      )
    }
    t.equal((await signIn(app, user.email)).statusCode, 403)
    t.equal((await signIn(app, user.email, 'not the pass phrase')).statusCode, 401)
    t.equal((await updateUser(app, user.id, { disabled: false })).statusCode, 200)
    for (const token of old) t.equal(await accountStatus(app, token), 401, 'enabled again')
    const fresh = (await signIn(app, user.email)).json().accessToken
    t.equal(await accountStatus(app, fresh), 200)
    t.equal(await accountStatus(app, bystander.token), 200, 'other users are unaffected')
  })

  t.test('every view of an account shows the last request at once', async t => {
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

  t.test('an unidentified request is noted for no user (§5.1.2)', async t => {
    const user = await signUp(app)
    await app.inject({ url: '/account', headers: bearer(`${user.token}x`) })
    await app.inject({ url: '/admin/users', headers: asAdmin })
    const list = await app.inject({ url: `/admin/users?email=${user.email}`, headers: asAdmin })
    t.equal(list.json().results[0].lastRequestAt, null)
  })
})
