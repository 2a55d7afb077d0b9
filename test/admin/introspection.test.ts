/** POST /admin/introspect (RFC 7662; docs/design.md, "Machine callers"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { deleteUser, impersonate } from '../support/admin-routes.ts'
import { createKey, SCOPES } from '../support/api-keys.ts'
import { asAdmin, bearer, manualClock, PASSWORD, signIn, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { isPrivateJson } from '../support/response-shapes.ts'

const INACTIVE = { active: false }

const DAY = 86_400_000

const inspect = (app: FastifyInstance, payload: object) =>
  call(app, 'POST', '/admin/introspect', payload, asAdmin)

const inspectForm = (app: FastifyInstance, payload: string | Buffer, headers: Record<string, string> = {}) =>
  app.inject({
    method: 'POST',
    url: '/admin/introspect',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...asAdmin, ...headers },
    payload,
  })

/** With the password, because the clock may have moved since the sign-in. */
const newApiKey = (app: FastifyInstance, accessToken: string, fields: object = {}) =>
  createKey(app, accessToken, { password: PASSWORD, ...fields })

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock()
  const app = await build(t, { clock: clock.now })
  const stateOf = async (token: string) => (await inspect(app, { token })).json()

  t.test('a session is active with its user, end, session and all scopes, as JSON and as a form', async t => {
    const { id, token } = await signUp(app)
    await updateUser(app, id, { roles: ['editor'] })
    const response = await inspect(app, { token, token_type_hint: 'access_token' })
    isPrivateJson(t, response, 200)
    const { sid, ...state } = response.json()
    t.same(state, {
      active: true,
      token_type: 'Bearer',
      sub: id,
      scope: SCOPES.join(' '),
      iat: Math.floor(clock.now() / 1_000),
      auth_time: Math.floor(clock.now() / 1_000),
      amr: ['pwd'],
      exp: (clock.now() + 30 * DAY) / 1_000,
      roles: ['editor'],
    })
    const sessions = await call(app, 'GET', '/account/sessions', undefined, bearer(token))
    t.equal(sessions.json().results[0].id, sid)
    const form = await inspectForm(app, new URLSearchParams({ token }).toString())
    t.same(form.json(), response.json())
    const utf8 = { 'content-type': 'application/x-www-form-urlencoded; charset=UTF-8' }
    t.equal((await inspectForm(app, `token=${token}`, utf8)).json().active, true)
  })

  t.test('an API key is active with its scopes and id; one without an end has no exp', async t => {
    const { id, token } = await signUp(app)
    const expiresAt = new Date(clock.now() + DAY).toISOString()
    const scopes = ['users:read', 'account:read']
    const limited = await newApiKey(app, token, { scopes, expiresAt })
    t.same(await stateOf(limited.token), {
      active: true,
      token_type: 'Bearer',
      sub: id,
      scope: 'account:read users:read',
      jti: limited.apiKey.id,
      exp: (clock.now() + DAY) / 1_000,
      roles: [],
    })
    t.notOk('exp' in (await stateOf((await newApiKey(app, token)).token)))
    clock.advance(DAY)
    t.same(await stateOf(limited.token), INACTIVE, 'expired')
  })

  t.test('an impersonated session names the admin key', async t => {
    const { id } = await signUp(app)
    const { accessToken } = (await impersonate(app, id)).json()
    const state = await stateOf(accessToken)
    t.match(state, { active: true, sub: id, act: { sub: /^[0-9a-f]{8}$/ } })
    t.notOk('iat' in state, 'the user has not signed in')
  })

  t.test('exactly {"active":false}: unknown, malformed, ended, of a disabled or deleted user', async t => {
    const unknown = [
      'x',
      'a.b.c',
      ' ',
      '\u0000',
      '😀',
      'gate_pat_',
      `gate_pat_${'0'.repeat(49)}`,
      'x'.repeat(10_000),
    ]
    for (const token of unknown) t.same(await stateOf(token), INACTIVE, token.slice(0, 20))

    const ends: Record<string, (user: { id: string; token: string }) => Promise<unknown>> = {
      'signed out': ({ token }) => call(app, 'POST', '/account/sign-out', undefined, bearer(token)),
      disabled: ({ id }) => updateUser(app, id, { disabled: true }),
      deleted: ({ id }) => deleteUser(app, id),
      'past its absolute end': async () => clock.advance(30 * DAY + 1_000),
    }
    for (const [title, end] of Object.entries(ends)) {
      const user = await signUp(app)
      const { token: apiKey } = await newApiKey(app, user.token)
      t.equal((await stateOf(user.token)).active, true, 'warm')
      t.equal((await stateOf(apiKey)).active, true)
      await end(user)
      t.same(await stateOf(user.token), INACTIVE, title)
      const ended = title === 'disabled' || title === 'deleted'
      t.equal((await stateOf(apiKey)).active, !ended, `${title}: the API key`)
    }

    const user = await signUp(app)
    const { token: apiKey, apiKey: stored } = await newApiKey(app, user.token)
    t.equal((await stateOf(apiKey)).active, true)
    await call(app, 'DELETE', `/account/api-keys/${stored.id}`, undefined, bearer(user.token))
    t.same(await stateOf(apiKey), INACTIVE, 'revoked')
  })

  t.test('it is no request of the user: neither the last request nor the idle time changes', async t => {
    const { id, email, token } = await signUp(app)
    const lastRequestAt = async () =>
      (await call(app, 'GET', `/admin/users/${id}`, undefined, asAdmin)).json().lastRequestAt
    const before = await lastRequestAt()
    clock.advance(9 * DAY)
    t.equal((await stateOf(token)).active, true)
    t.equal(await lastRequestAt(), before)
    clock.advance(DAY)
    t.same(await stateOf(token), INACTIVE, 'idle for ten days')
    const again = (await signIn(app, email)).json().accessToken
    t.equal((await stateOf(again)).active, true)
  })

  t.test('up to a hundred tokens at once have their states in the order of the tokens', async t => {
    const users = [await signUp(app), await signUp(app)]
    const key = await newApiKey(app, users[0]?.token ?? '')
    const tokens = [users[1]?.token, 'x', key.token, users[0]?.token, '', users[1]?.token].map(String)
    const response = await inspect(app, { tokens })
    isPrivateJson(t, response, 200)
    const { results } = response.json()
    t.same(results, await Promise.all(tokens.map(stateOf)))
    t.same(
      results.map(({ sub }: { sub?: string }) => sub),
      [users[1]?.id, undefined, users[0]?.id, users[0]?.id, undefined, users[1]?.id],
    )
    t.same((await inspect(app, { tokens: [] })).json(), { results: [] })
    const many = Array.from({ length: 100 }, () => 'x'.repeat(1_000))
    t.equal((await inspect(app, { tokens: many })).json().results.length, 100, '100 kB of tokens')
    errorsAt(t, await inspect(app, { tokens: [...many, 'x'] }), 400, ['tokens'])
    errorsAt(t, await inspect(app, { tokens: ['x', 7] }), 400, ['tokens.1'])
    errorsAt(t, await inspect(app, { tokens, token: 'x' }), 400, ['tokens'])
    errorsAt(t, await inspect(app, { tokens: 'x' }), 400, ['tokens'])
    errorsAt(t, await inspectForm(app, 'tokens=x'), 400, ['tokens'])
    globalErrorOf(t, await inspect(app, { tokens: ['x'.repeat(131_072)] }), 413)
  })

  t.test('bad input is 400 or 415 in the one format', async t => {
    const token = 'x'
    const cases: [string, string][] = [
      ['', 'global'],
      ['tok=1&token=', 'tok'],
      ['token_type_hint=access_token', 'token'],
      [`token=${token}&token=${token}`, 'global'],
      [`token=${token}&client_id=a`, 'client_id'],
      [`token=${token}&__proto__=a`, '__proto__'],
    ]
    for (const [payload, field] of cases) errorsAt(t, await inspectForm(app, payload), 400, [field], payload)
    for (const [payload, message] of [
      ['token=%ff', 'The body is not valid UTF-8'],
      ['token=a%C3', 'The body is not valid UTF-8'],
      ['token=%c0%af', 'The body is not valid UTF-8'],
      ['token=%ed%a0%80', 'The body is not valid UTF-8'],
      ['token=a&token%ff=b', 'The body is not valid UTF-8'],
      [Buffer.from('token=\xe9', 'latin1'), 'The body is not valid UTF-8'],
      ['token=100%', 'The body is not a valid form: write % as %25'],
      ['token=%4', 'The body is not a valid form: write % as %25'],
      ['token=%zz', 'The body is not a valid form: write % as %25'],
      ['token=%u0041', 'The body is not a valid form: write % as %25'],
      ['%=1&token=a', 'The body is not a valid form: write % as %25'],
      ['token=a&%74oken=b', 'The body names a property twice'],
      ['token=a&token', 'The body names a property twice'],
    ] as const)
      t.equal(globalErrorOf(t, await inspectForm(app, payload), 400, String(payload)), message)
    for (const payload of ['token=', 'token', '&&token=x&', 'token=a=b', 'token=é+%2B%C3%A9%F0%9F%98%80'])
      t.same((await inspectForm(app, payload)).json(), INACTIVE, payload)
    const type = (value: string) => inspectForm(app, `token=${token}`, { 'content-type': value })
    t.match(globalErrorOf(t, await type('text/plain'), 415), /x-www-form-urlencoded/)
    globalErrorOf(t, await type('application/x-www-form-urlencoded; charset=latin1'), 415)
    globalErrorOf(t, await inspectForm(app, `token=${token}`, { 'content-encoding': 'gzip' }), 415)
    globalErrorOf(t, await inspectForm(app, `token=${'x'.repeat(140_000)}`), 413)
    errorsAt(t, await inspect(app, { token: 7 }), 400, ['token'])
    globalErrorOf(
      t,
      await app.inject({
        method: 'POST',
        url: '/account/sign-in',
        payload: 'email=a',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      }),
      415,
    )
  })
})
