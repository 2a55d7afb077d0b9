/** examples/pins: a sign-in method as a feature. */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { pins } from '../../examples/pins/pins.ts'
import { call } from '../support/account-routes.ts'
import { allEvents } from '../support/admin-routes.ts'
import { addTotp, ENCRYPTION_KEY, STEP } from '../support/authenticator-apps.ts'
import { asAdmin, bearer, manualClock, PASSWORD, signIn, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { readMetrics } from '../support/metrics.ts'

const PIN = '4711'

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const env = { DATABASE_URL: await newDatabase(t), ENCRYPTION_KEY }
  const app: FastifyInstance = await build(t, { clock: clock.now, features: [pins], env })
  const set = (token: string, pin = PIN) => call(app, 'PUT', '/account/pin', { pin }, bearer(token))
  const post = (email: string, pin = PIN, code?: string) =>
    call(app, 'POST', '/account/sign-in/pin', { email, pin, ...(code !== undefined && { code }) })

  const shownMethods = async (on: FastifyInstance, id: string) =>
    (await call(on, 'GET', `/admin/users/${id}`, undefined, asAdmin)).json().methods

  t.test('a PIN signs in, and only after it was set', async t => {
    const { email, token } = await signUp(app)
    errorsAt(t, await post(email), 401, ['pin'])
    t.equal((await set(token)).statusCode, 204)
    t.strictSame((await set(token, '47111')).json().errors, { pin: ['must be four digits'] })
    errorsAt(t, await post(email, '0000'), 401, ['pin'])
    errorsAt(t, await post('nobody@example.com'), 401, ['pin'])
    const response = await post(email)
    t.equal(response.statusCode, 200, response.body)
    const { accessToken, user } = response.json()
    const sessions = (await call(app, 'GET', '/account/sessions', undefined, bearer(accessToken))).json()
    t.match(sessions.results[0], { method: 'pin', amr: ['pin'], current: true })
    const methods = (await call(app, 'GET', '/account/methods', undefined, bearer(accessToken))).json()
    t.match(methods.results, [{ method: 'password' }, { method: 'pin', isFactor: false }])
    t.strictSame(await shownMethods(app, user.id), ['password', 'pin'])
    const [event] = await allEvents(app, { userId: user.id, type: 'user.signed-in' })
    t.equal(event?.details?.method, 'pin')
    const metrics = await readMetrics(app)
    const count = (outcome: string) => metrics.sum('gatehouse_sign_ins_total', { method: 'pin', outcome })
    t.same([count('succeeded'), count('wrong_credentials')], [1, 3])
  })

  t.test('the pages set a PIN and sign in with it, and a wrong one is an error of the form', async t => {
    const { email, token } = await signUp(app)
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const send = (url: string, fields: Record<string, string>, cookies = {}) =>
      app.inject({ method: 'POST', url, headers, cookies, payload: new URLSearchParams(fields).toString() })
    const cookies = { ACCESS_TOKEN: token }
    const invalid = await send('/security/pin', { pin: '12' }, cookies)
    t.match(invalid, { statusCode: 400, body: /must be four digits/ })
    const stored = await send('/security/pin', { pin: PIN }, cookies)
    t.match(stored, { statusCode: 303, headers: { location: '../security' } })
    t.match(await app.inject({ url: '/security', cookies }), {
      statusCode: 200,
      body: /href="\.\/security\/pin"/,
    })
    t.match(await app.inject('/sign-in'), { statusCode: 200, body: /href="\.\/sign-in\/pin"/ })
    const wrong = await send('/sign-in/pin', { email, pin: '0000' })
    t.match(wrong, { statusCode: 401, body: /<form[^>]* method="post" action="\.\.\/sign-in\/pin">/ })
    t.match(wrong.body, /The PIN is wrong/)
    const signedIn = await send('/sign-in/pin', { email, pin: PIN })
    t.equal(signedIn.statusCode, 303)
    t.match(signedIn.headers['set-cookie'], /ACCESS_TOKEN=/)
    t.match(await send('/security/pin', { pin: PIN }), {
      statusCode: 303,
      headers: { location: '../sign-in' },
    })
  })

  t.test('users with an authenticator app send a code too; disabled ones get in no way', async t => {
    const { id, email, token } = await signUp(app)
    await set(token)
    const { code } = await addTotp(app, token)
    clock.advance(STEP)
    errorsAt(t, await post(email), 401, ['code'])
    t.equal((await post(email, PIN, code())).statusCode, 200)
    await updateUser(app, id, { disabled: true })
    globalErrorOf(t, await post(email), 403)
  })

  t.test('it can be the only way in, and then stays', async t => {
    const { email, token } = await signUp(app)
    globalErrorOf(t, await call(app, 'DELETE', '/account/pin', undefined, bearer(token)), 404)
    globalErrorOf(t, await call(app, 'DELETE', '/account/password', undefined, bearer(token)), 409)
    await set(token)
    t.equal((await call(app, 'DELETE', '/account/password', undefined, bearer(token))).statusCode, 204)
    globalErrorOf(t, await call(app, 'DELETE', '/account/pin', undefined, bearer(token)), 409)
    t.equal((await signIn(app, email, PASSWORD)).statusCode, 401)
    t.equal((await post(email)).statusCode, 200)
  })

  t.test('a PIN is no way in while the method is switched off', async t => {
    const { id, email, token } = await signUp(app)
    await set(token)
    const { signInMethods: { pin } = {} } = pins
    if (pin === undefined) throw new Error('The feature has no method')
    const signInMethods = { pin: { ...pin, isEnabled: () => false } }
    const features = [{ ...pins, signInMethods }]
    const other: FastifyInstance = await build(t, { clock: clock.now, features, env })
    t.strictSame(await shownMethods(other, id), ['password'])
    const attempt = await call(other, 'POST', '/account/sign-in/pin', { email, pin: PIN })
    globalErrorOf(t, attempt, 404)
    globalErrorOf(t, await call(other, 'DELETE', '/account/password', undefined, bearer(token)), 409)
    t.equal((await call(app, 'DELETE', '/account/password', undefined, bearer(token))).statusCode, 204)
  })
})
