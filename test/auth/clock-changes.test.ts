/**
 * Moving the clock back and forth ends no session, moves no last request back and fails no request (docs/design.md, "Tokens and sessions"
 * and "Hot path").
 */
import t from 'tap'
import { forgot, reset } from '../support/account-routes.ts'
import { allEvents } from '../support/admin-routes.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { mailbox } from '../support/mailbox.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  t.test('a token stays valid after the clock is set back, cached or not', async t => {
    const clock = manualClock()
    const DATABASE_URL = await newDatabase(t)
    const app = await build(t, { clock: clock.now, hasher: quickHashing, env: { DATABASE_URL } })
    const [cached, unused] = [await signUp(app), await signUp(app)]
    t.equal(await accountStatus(app, cached.token), 200)
    clock.advance(-HOUR)
    t.equal(await accountStatus(app, cached.token), 200, 'cached')
    t.equal(await accountStatus(app, unused.token), 200, 'used for the first time')
    t.equal((await updateUser(app, cached.id, { firstName: 'Ada' })).statusCode, 200)
    t.equal(await accountStatus(app, cached.token), 200, 'looked up again')
    const other = await build(t, { clock: clock.now, env: { DATABASE_URL } })
    t.equal(await accountStatus(other, cached.token), 200, 'by another instance, or after a restart')
    const fresh = (await signIn(app, unused.email)).json().accessToken
    t.equal(await accountStatus(app, fresh), 200, 'a session opened meanwhile')
    clock.advance(HOUR)
    for (const token of [cached.token, unused.token, fresh]) {
      t.equal(await accountStatus(app, token), 200, 'and when the clock is right again')
    }
    const out = await app.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(fresh) })
    t.equal(out.statusCode, 204)
    clock.advance(-HOUR)
    t.equal(await accountStatus(app, fresh), 401, 'a sign-out stays one')
  })

  t.test('sessions expire by the current clock, in the cache and in the store', async t => {
    const clock = manualClock()
    const env = { SESSION_LIFETIME: '3h', SESSION_IDLE: '1h' }
    const app = await build(t, { clock: clock.now, env, hasher: quickHashing })
    const { id, token } = await signUp(app)
    const start = clock.now()
    for (const minutes of [0, 30, -90, 20, 80, -200, 90, 140, 20, 179, 100]) {
      clock.advance(start + minutes * MINUTE - clock.now())
      t.equal(await accountStatus(app, token), 200, `at ${minutes} minutes`)
      app.services.authenticator.invalidate(id)
      t.equal(await accountStatus(app, token), 200, `at ${minutes} minutes, looked up again`)
    }
    clock.advance(start + 180 * MINUTE - clock.now())
    t.equal(await accountStatus(app, token), 401, 'at its end')
    clock.advance(-MINUTE)
    t.equal(await accountStatus(app, token), 200, 'which was not there yet')
  })

  t.test('a last request never moves back (§5.1.2)', async t => {
    const clock = manualClock()
    const DATABASE_URL = await newDatabase(t)
    const app = await build(t, { clock: clock.now, env: { DATABASE_URL }, hasher: quickHashing })
    const { id, token } = await signUp(app)
    const lastRequestAt = async (from = app) =>
      (await from.inject({ url: `/admin/users/${id}`, headers: asAdmin })).json().lastRequestAt
    t.equal(await accountStatus(app, token), 200)
    const latest = new Date(clock.now()).toISOString()
    for (const step of [-HOUR, -HOUR, 90 * MINUTE, -MINUTE]) {
      clock.advance(step)
      t.equal(await accountStatus(app, token), 200)
      t.equal(await lastRequestAt(), latest)
    }
    await app.close()
    const restarted = await build(t, { clock: clock.now, env: { DATABASE_URL } })
    t.equal(await lastRequestAt(restarted), latest, 'in the store')
    t.equal(await accountStatus(restarted, token), 200)
    t.equal(await lastRequestAt(restarted), latest)
    clock.advance(HOUR)
    t.equal(await accountStatus(restarted, token), 200)
    t.equal(await lastRequestAt(restarted), new Date(clock.now()).toISOString(), 'and goes on from there')
  })

  t.test('e-mail tokens expire by the current clock and work once', async t => {
    const clock = manualClock()
    const app = await build(t, { clock: clock.now, hasher: quickHashing })
    const mails = mailbox(app)
    const { email } = await signUp(app)
    t.equal((await forgot(app, email)).statusCode, 202)
    const token = await mails.token(email, 'passwordReset')
    clock.advance(61 * MINUTE)
    t.equal((await reset(app, token, PASSWORD)).statusCode, 400, 'an hour later')
    clock.advance(-3 * HOUR)
    t.equal((await reset(app, token, PASSWORD)).statusCode, 200, 'before it was mailed')
    t.equal((await reset(app, token, PASSWORD)).statusCode, 400, 'once')
  })

  t.test('every event is listed once, whatever its timestamp', async t => {
    const clock = manualClock()
    const app = await build(t, { clock: clock.now, hasher: quickHashing })
    const { id, token } = await signUp(app)
    for (const [index, step] of [0, -HOUR, 30 * MINUTE, 2 * HOUR, -HOUR, 0, 1].entries()) {
      clock.advance(step)
      t.equal((await updateUser(app, id, { lastName: `Name ${index}` })).statusCode, 200)
      const sessions = await app.inject({ url: '/account/sessions', headers: bearer(token) })
      t.equal(sessions.json().results.length, 1)
    }
    const events = await allEvents(app, { limit: 2 })
    t.equal(new Set(events.map(({ id }) => id)).size, 8)
    t.equal(events.length, 8)
    const timestamps = events.map(({ at }) => at)
    t.strictSame(timestamps, timestamps.toSorted().reverse(), 'by their timestamps, newest first')
    const listed = await app.inject({ url: '/users?limit=1', headers: bearer(token) })
    t.equal(listed.json().results[0].id, id)
  })
})
