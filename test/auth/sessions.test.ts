/** Sign-out, lists of sessions, ending sessions, password changes. */
import type { FastifyInstance, InjectOptions } from 'fastify'
import t from 'tap'
import {
  accountStatus,
  asAdmin,
  bearer,
  cookie,
  manualClock,
  PASSWORD,
  type SignedUp,
  signIn,
  signUp,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'

const OTHER_PASSWORD = 'another pass phrase of some length'

const MINUTE = 60_000

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock()
  const app = await build(t, { clock: clock.now, env: { SESSION_IDLE: '1h' } })

  const request = (method: InjectOptions['method'] & string, url: string, token: string, payload?: object) =>
    app.inject({ method, url, headers: bearer(token), ...(payload && { payload }) })
  const another = async ({ email }: SignedUp): Promise<string> =>
    (await signIn(app, email)).json().accessToken
  const list = async (token: string, from: FastifyInstance = app) =>
    (await from.inject({ url: '/account/sessions', headers: bearer(token) })).json().results

  t.test('sign-out ends only this session, at once, and clears the cookie', async t => {
    const user = await signUp(app)
    const second = await another(user)
    const response = await request('POST', '/account/sign-out', user.token)
    t.equal(response.statusCode, 204)
    t.equal(response.body, '')
    t.match(response.cookies, [
      { name: 'ACCESS_TOKEN', value: '', path: '/', httpOnly: true, sameSite: 'Lax' },
    ])
    t.ok(Number(response.cookies[0]?.expires) < Date.now(), 'and it is past')
    t.equal(await accountStatus(app, user.token), 401)
    t.equal(await accountStatus(app, second), 200)
    t.equal((await request('POST', '/account/sign-out', user.token)).statusCode, 401, 'there is nothing left')
  })

  t.test('sign-out by cookie works only from allowed origins', async t => {
    const user = await signUp(app)
    const signOut = (headers: Record<string, string>) =>
      app.inject({
        method: 'POST',
        url: '/account/sign-out',
        headers: { ...cookie(user.token), ...headers },
      })
    t.equal((await signOut({ origin: 'https://elsewhere.example' })).statusCode, 403)
    t.equal(await accountStatus(app, user.token), 200)
    t.equal((await signOut({ 'sec-fetch-site': 'same-origin' })).statusCode, 204)
    t.equal(await accountStatus(app, user.token), 401)
  })

  t.test('the list has the own sessions, newest first, with their details', async t => {
    const user = await signUp(app)
    await signUp(app)
    clock.advance(MINUTE)
    const response = await app.inject({
      method: 'POST',
      url: '/account/sign-in',
      headers: { 'user-agent': 'a browser' },
      remoteAddress: '192.0.2.7',
      payload: { email: user.email, password: PASSWORD },
    })
    const token = response.json().accessToken
    clock.advance(MINUTE)
    const sessions = await list(token)
    t.equal(sessions.length, 2)
    t.match(sessions, [
      {
        createdAt: new Date(clock.now() - MINUTE).toISOString(),
        lastRequestAt: new Date(clock.now()).toISOString(),
        expiresAt: response.json().expiresAt,
        ip: '192.0.2.7',
        userAgent: 'a browser',
        current: true,
      },
      { createdAt: new Date(clock.now() - 2 * MINUTE).toISOString(), current: false },
    ])
    t.notMatch(JSON.stringify(sessions), token.split('.')[2], 'and nothing that could be used')
  })

  t.test('an ended session is not listed', async t => {
    const user = await signUp(app)
    clock.advance(61 * MINUTE)
    const sessions = await list(await another(user))
    t.equal(sessions.length, 1, 'the first was idle too long')
  })

  t.test('a session is ended by its id, only by its own user', async t => {
    const [user, otherUser] = [await signUp(app), await signUp(app)]
    const second = await another(user)
    const [newest] = await list(second)
    t.equal((await request('DELETE', `/account/sessions/${newest.id}`, otherUser.token)).statusCode, 404)
    t.equal(await accountStatus(app, second), 200)
    const ended = await request('DELETE', `/account/sessions/${newest.id}`, user.token)
    t.equal(ended.statusCode, 204)
    t.equal(ended.headers['set-cookie'], undefined, 'the own cookie is of another session')
    t.equal(await accountStatus(app, second), 401)
    t.equal(await accountStatus(app, user.token), 200)
    t.equal((await request('DELETE', `/account/sessions/${newest.id}`, user.token)).statusCode, 404, 'once')
    t.same((await request('DELETE', '/account/sessions/x', user.token)).statusCode, 400)
    const [own] = await list(user.token)
    const last = await request('DELETE', `/account/sessions/${own.id}`, user.token)
    t.ok(last.headers['set-cookie'], 'the own session: its cookie is cleared')
    t.equal(await accountStatus(app, user.token), 401)
  })

  t.test('the other sessions, or all of them, can be ended together', async t => {
    const user = await signUp(app)
    const otherUser = await signUp(app)
    const tokens = [await another(user), await another(user)]
    t.equal((await request('DELETE', '/account/sessions', user.token)).statusCode, 204)
    for (const token of tokens) t.equal(await accountStatus(app, token), 401)
    t.equal(await accountStatus(app, user.token), 200)
    const third = await another(user)
    t.equal((await request('DELETE', '/account/sessions?scope=none', user.token)).statusCode, 400)
    t.equal((await request('DELETE', '/account/sessions?scope=all', user.token)).statusCode, 204)
    for (const token of [third, user.token]) t.equal(await accountStatus(app, token), 401)
    t.equal(await accountStatus(app, otherUser.token), 200)
  })

  t.test('a new password ends every session but the new one', async t => {
    const user = await signUp(app)
    const second = await another(user)
    clock.advance(MINUTE)
    const change = (currentPassword: string, newPassword: string, token = user.token) =>
      request('PUT', '/account/password', token, { currentPassword, newPassword })
    const wrong = await change('something else entirely', OTHER_PASSWORD)
    t.equal(wrong.statusCode, 400)
    t.strictSame(wrong.json(), { errors: { currentPassword: ['is wrong'] } })
    t.equal((await change(PASSWORD, 'password1')).statusCode, 400, 'a common one')
    t.match((await change(PASSWORD, 'short')).json(), { errors: { newPassword: [/./] } })
    t.match((await change(PASSWORD, user.email.toUpperCase())).json(), { errors: { newPassword: [/./] } })
    t.equal(await accountStatus(app, second), 200, 'so far nothing has changed')
    const changed = await change(PASSWORD, OTHER_PASSWORD)
    t.equal(changed.statusCode, 200)
    const { accessToken, user: account } = changed.json()
    t.equal(account.updatedAt, new Date(clock.now()).toISOString())
    t.match(changed.cookies, [{ name: 'ACCESS_TOKEN', value: accessToken }])
    t.equal(await accountStatus(app, accessToken), 200)
    for (const token of [second, user.token]) t.equal(await accountStatus(app, token), 401)
    t.equal((await list(accessToken)).length, 1)
    t.equal((await signIn(app, user.email)).statusCode, 401)
    t.equal((await signIn(app, user.email, OTHER_PASSWORD)).statusCode, 200)
  })

  t.test('of concurrent changes of a password exactly one succeeds, 20 rounds', async t => {
    for (let round = 0; round < 20; round += 1) {
      const user = await signUp(app)
      const responses = await Promise.all(
        ['one', 'two'].map(name =>
          request('PUT', '/account/password', user.token, {
            currentPassword: PASSWORD,
            newPassword: `${OTHER_PASSWORD} ${name}`,
          }),
        ),
      )
      const won = responses.filter(({ statusCode }) => statusCode === 200)
      if (won.length !== 1) t.fail(`${won.length} have won`)
      t.equal((await list(won[0]?.json().accessToken)).length, 1)
    }
  })

  t.test('an administrator sees a user, and ends the sessions of that user', async t => {
    const [user, otherUser] = [await signUp(app), await signUp(app)]
    const second = await another(user)
    const found = await app.inject({ url: `/admin/users/${user.id}`, headers: asAdmin })
    t.equal(found.statusCode, 200)
    t.match(found.json(), { id: user.id, email: user.email, disabled: false })
    t.equal(found.headers['cache-control'], 'no-store')
    const end = (id: string) =>
      app.inject({ method: 'DELETE', url: `/admin/users/${id}/sessions`, headers: asAdmin })
    t.equal((await end(user.id)).statusCode, 204)
    for (const token of [user.token, second]) t.equal(await accountStatus(app, token), 401)
    t.equal(await accountStatus(app, otherUser.token), 200)
    t.equal((await signIn(app, user.email)).statusCode, 200, 'the account is as it was')
    const unknown = '01900000-0000-7000-8000-000000000000'
    t.equal((await end(unknown)).statusCode, 404)
    t.equal((await app.inject({ url: `/admin/users/${unknown}`, headers: asAdmin })).statusCode, 404)
    t.equal((await end('x')).statusCode, 400)
  })
})
