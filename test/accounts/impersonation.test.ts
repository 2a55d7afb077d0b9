/** POST /admin/users/:id/impersonate (docs/design.md, "Account life cycle"). */
import t from 'tap'
import { allEvents, createUser, impersonate, UNKNOWN_ID } from '../support/admin-routes.ts'
import {
  ADMIN_KEY,
  accountStatus,
  asAdmin,
  bearer,
  cookie,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { ACCOUNT, hasShape, isPrivateJson } from '../support/response-shapes.ts'

const HOUR = 3_600_000
const OTHER_KEY = 'another-admin-key-0123456789'

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock()
  const app = await build(t, { clock: clock.now, env: { ADMIN_KEY_PREVIOUS: OTHER_KEY } })
  const iso = (after = 0) => new Date(clock.now() + after).toISOString()
  const tokenFor = async (id: string, headers = asAdmin): Promise<string> =>
    (await impersonate(app, id, headers)).json().accessToken
  const sessionsOf = async (token: string) =>
    (await app.inject({ url: '/account/sessions', headers: bearer(token) })).json().results

  t.test('impersonation returns 201 SignedIn for one hour, without a cookie', async t => {
    const { id, email } = await signUp(app, { firstName: 'Ann' })
    const response = await impersonate(app, id)
    isPrivateJson(t, response, 201)
    t.equal(response.headers['set-cookie'], undefined)
    const { accessToken, expiresAt, user, ...others } = response.json()
    t.strictSame(others, {})
    t.equal(expiresAt, iso(HOUR))
    hasShape(t, user, ACCOUNT)
    t.match(user, { id, email, firstName: 'Ann' })
    const account = await app.inject({ url: '/account', headers: bearer(accessToken) })
    t.match(account.json(), { id, email })
    t.equal((await app.inject({ url: '/account', headers: cookie(accessToken) })).statusCode, 200)
  })

  t.test(
    'an impersonation ends after an hour even if it is used, and earlier if sessions are shorter',
    async t => {
      const { id, token } = await signUp(app)
      const acting = await tokenFor(id)
      for (let minute = 0; minute < 60; minute += 10) {
        t.equal(await accountStatus(app, acting), 200, `after ${minute} minutes`)
        clock.advance(HOUR / 6 - (minute === 50 ? 1 : 0))
      }
      t.equal(await accountStatus(app, acting), 200, 'a millisecond before the end')
      clock.advance(1)
      t.equal(await accountStatus(app, acting), 401)
      t.equal(await accountStatus(app, token), 200, "the user's own goes on")
      const strict = await build(t, { clock: clock.now, env: { SESSION_IDLE: '10m' } })
      const idle: string = (await impersonate(strict, (await createUser(strict)).id)).json().accessToken
      clock.advance(HOUR / 6 + 1_000)
      t.equal(await accountStatus(strict, idle), 401, 'idle for ten minutes')
    },
  )

  t.test('the user sees the impersonation in the list of sessions and can end it', async t => {
    const { id, token } = await signUp(app)
    const acting = await tokenFor(id)
    const marks = async (token: string) =>
      (await sessionsOf(token))
        .map((each: Record<string, unknown>) => [each.impersonated, each.current])
        .sort()
    t.strictSame(await marks(token), [
      [false, true],
      [true, false],
    ])
    t.strictSame(await marks(acting), [
      [false, false],
      [true, true],
    ])
    const own = (await sessionsOf(token)).find((each: { impersonated: boolean }) => each.impersonated)
    t.match(own, { expiresAt: iso(HOUR), createdAt: iso() })
    const url = `/account/sessions/${own.id}`
    t.equal((await app.inject({ method: 'DELETE', url, headers: bearer(token) })).statusCode, 204)
    t.equal(await accountStatus(app, acting), 401, 'at once')
    t.equal(await accountStatus(app, token), 200)
  })

  t.test('everything that ends the sessions of a user ends the impersonation too', async t => {
    const ends: Record<string, (id: string, token: string) => Promise<{ statusCode: number }>> = {
      'end of the others': (_id, token) =>
        app.inject({ method: 'DELETE', url: '/account/sessions', headers: bearer(token) }),
      'end of all by an administrator': id =>
        app.inject({ method: 'DELETE', url: `/admin/users/${id}/sessions`, headers: asAdmin }),
      'another password': (_id, token) =>
        app.inject({
          method: 'PUT',
          url: '/account/password',
          headers: bearer(token),
          payload: { currentPassword: PASSWORD, newPassword: `${PASSWORD} 2` },
        }),
      disabling: id => updateUser(app, id, { disabled: true }),
      deletion: id => app.inject({ method: 'DELETE', url: `/admin/users/${id}`, headers: asAdmin }),
    }
    for (const [title, end] of Object.entries(ends)) {
      const { id, token } = await signUp(app)
      const acting = await tokenFor(id)
      t.equal(await accountStatus(app, acting), 200)
      const { statusCode } = await end(id, token)
      t.ok(statusCode === 200 || statusCode === 204, `${title}: ${statusCode}`)
      t.equal(await accountStatus(app, acting), 401, title)
    }
  })

  t.test('a disabled user is a 403, an unknown one a 404, an invalid id a 400', async t => {
    const { id } = await createUser(app)
    await updateUser(app, id, { disabled: true })
    globalErrorOf(t, await impersonate(app, id), 403)
    globalErrorOf(t, await impersonate(app, UNKNOWN_ID), 404)
    for (const bad of ['x', 'a%00b', '01890000-0000-7000-8000'])
      errorsAt(t, await impersonate(app, bad), 400, ['id'], bad)
    globalErrorOf(t, await impersonate(app, id, {}), 401, 'without the key')
    await updateUser(app, id, { disabled: false })
    t.equal((await impersonate(app, id)).statusCode, 201)
  })

  t.test('an impersonation concurrent with disabling leaves no valid token', async t => {
    for (let round = 0; round < 20; round += 1) {
      const { id } = await createUser(app)
      const responses = Array.from({ length: 4 }, () => impersonate(app, id))
      for (let turn = 0; turn < round % 5; turn += 1) await new Promise(setImmediate)
      const disabled = updateUser(app, id, { disabled: true })
      responses.push(impersonate(app, id))
      t.equal((await disabled).statusCode, 200)
      for (const response of await Promise.all(responses)) {
        t.ok(response.statusCode === 201 || response.statusCode === 403, response.body)
        const token = response.json().accessToken
        if (token !== undefined) t.equal(await accountStatus(app, token), 401, `round ${round}`)
      }
    }
  })

  t.test('events of an impersonation name the admin key as actor, not the user', async t => {
    const { id, token } = await signUp(app)
    const actors: (string | null)[] = []
    for (const key of [ADMIN_KEY, OTHER_KEY]) {
      const headers = { 'x-admin-key': key }
      const before = new Set((await allEvents(app, { userId: id })).map(event => event.id))
      const acting = await tokenFor(id, headers)
      const spare = await tokenFor(id, headers)
      const act = (method: 'PUT' | 'POST' | 'DELETE', url: string, payload?: object) =>
        app.inject({ method, url, headers: bearer(acting), ...(payload && { payload }) })
      const spareId = (await sessionsOf(spare)).find((each: { current: boolean }) => each.current).id
      const responses = [
        await act('PUT', '/account', { firstName: `By ${actors.length}` }),
        await act('POST', '/account/verify-email/resend'),
        await act('DELETE', `/account/sessions/${spareId}`),
        await act('POST', '/account/sign-out'),
      ]
      t.strictSame(
        responses.map(({ statusCode }) => statusCode),
        [200, 202, 204, 204],
      )
      const events = (await allEvents(app, { userId: id })).filter(event => !before.has(event.id))
      t.strictSame(events.map(({ type }) => type).sort(), [
        'email.verification-requested',
        'session.ended',
        'session.ended',
        'user.changed',
        'user.impersonated',
        'user.impersonated',
      ])
      const [first] = events
      for (const { type, actor } of events) t.strictSame(actor, first?.actor, type)
      t.equal(first?.actor.type, 'adminKey')
      t.not(first?.actor.id, id)
      actors.push(first?.actor.id ?? null)
    }
    t.equal(new Set(actors).size, 2, 'each key has an id of its own')
    clock.advance(1)
    await app.inject({ method: 'PUT', url: '/account', headers: bearer(token), payload: { lastName: 'Own' } })
    const [own] = await allEvents(app, { userId: id })
    t.strictSame(own?.actor, { type: 'user', id }, "the user's own session is the user's")
  })

  t.test(
    'impersonation cannot change credentials or delete the account, even with the correct password',
    async t => {
      const { id, email } = await signUp(app)
      const acting = await tokenFor(id)
      const requests = [
        ['PUT', '/account/password', { currentPassword: PASSWORD, newPassword: `${PASSWORD} 2` }],
        ['PUT', '/account/email', { password: PASSWORD, email: `other.${id}@example.com` }],
        ['DELETE', '/account', { password: PASSWORD }],
      ] as const
      for (const [method, url, payload] of requests) {
        const response = await app.inject({ method, url, headers: bearer(acting), payload })
        globalErrorOf(t, response, 403, `${method} ${url}`)
      }
      t.strictSame(
        (await allEvents(app, { userId: id })).map(({ type }) => type),
        ['user.impersonated', 'user.signed-up'],
      )
      t.equal((await signIn(app, email)).statusCode, 200)
    },
  )
})
