/** A new API key needs a recent sign-in, or the password (RFC 9470; docs/design.md, "Machine callers"). */
import t from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { call } from '../support/account-routes.ts'
import { type AuditLine, getEvents, impersonate } from '../support/admin-routes.ts'
import { listKeys, postKey, revokeKey } from '../support/api-keys.ts'
import { asAdmin, bearer, manualClock, PASSWORD, signIn, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { perAddress } from '../support/limits.ts'
import { race, rounds } from '../support/races.ts'
import { until } from '../support/until.ts'

const TEN_MINUTES = 600_000
/** Milliseconds until events that are not visible count as missing. */
const DEADLINE = 10_000
const REFUSED =
  'This needs a sign-in within the last ten minutes: send your password or a code too, or use POST /account/reauthenticate first'
const CHALLENGE = 'Bearer error="insufficient_user_authentication", max_age=600'
const OTHER_PASSWORD = 'another pass phrase of some length'

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const DATABASE_URL = await newDatabase(t)
  const options = { clock: clock.now, env: { DATABASE_URL }, hasher: quickHashing }
  const app = await build(t, options)

  t.test('ten minutes after sign-in it needs no password, a millisecond later it does', async t => {
    const { email, token } = await signUp(app)
    t.equal((await postKey(app, token)).statusCode, 201, 'at once')
    clock.advance(TEN_MINUTES)
    const other = await build(t, options)
    t.equal((await postKey(app, token)).statusCode, 201, 'after ten minutes')
    t.equal((await postKey(other, token)).statusCode, 201, 'on another instance')
    clock.advance(1)
    for (const instance of [app, other]) {
      const refused = await postKey(instance, token)
      t.equal(globalErrorOf(t, refused, 403), REFUSED)
      t.equal(refused.headers['www-authenticate'], CHALLENGE)
    }
    errorsAt(t, await postKey(app, token, { password: 'not the pass phrase' }), 400, ['password'])
    const confirmed = await postKey(app, token, { password: PASSWORD })
    t.equal(confirmed.statusCode, 201)
    t.equal((await postKey(app, token)).statusCode, 403, 'a password confirms one request')
    t.equal((await listKeys(app, token)).length, 4)
    t.equal((await postKey(app, (await signIn(app, email)).json().accessToken)).statusCode, 201)
    t.equal(
      (await revokeKey(app, token, confirmed.json().apiKey.id)).statusCode,
      204,
      'a revocation needs none',
    )
  })

  t.test('requests do not make a session recent', async t => {
    const { token } = await signUp(app)
    for (let minute = 0; minute <= 10; minute += 1) {
      clock.advance(60_000)
      await app.inject({ url: '/account', headers: bearer(token) })
    }
    t.equal((await postKey(app, token)).statusCode, 403)
  })

  t.test('a password that is sent is checked also shortly after sign-in', async t => {
    const { token } = await signUp(app)
    errorsAt(t, await postKey(app, token, { password: 'not the pass phrase' }), 400, ['password'])
    t.equal((await postKey(app, token, { password: PASSWORD })).statusCode, 201)
    t.equal((await listKeys(app, token)).length, 1)
  })

  t.test('an impersonated session creates no key, even with the password', async t => {
    const { id, token } = await signUp(app)
    const acting: string = (await impersonate(app, id)).json().accessToken
    for (const payload of [{}, { password: PASSWORD }]) {
      const refused = await postKey(app, acting, payload)
      t.equal(globalErrorOf(t, refused, 403), 'An impersonated session cannot do this')
    }
    t.strictSame(await listKeys(app, token), [])
  })

  t.test('wrong passwords are throttled like those of other routes', async t => {
    const limited = await build(t, {
      ...options,
      env: { DATABASE_URL: await newDatabase(t), RATE_LIMIT: 'on' },
      rateLimits: {
        ...RATE_LIMITS,
        perAddress: perAddress(),
        loginThrottle: { freeAttempts: 2, window: 900, initialDelay: 600, maxDelay: 900 },
      },
    })
    const { token } = await signUp(limited)
    clock.advance(TEN_MINUTES + 1)
    const guess = () => postKey(limited, token, { password: 'not the pass phrase' })
    const statuses = [(await guess()).statusCode, (await guess()).statusCode, (await guess()).statusCode]
    t.same(statuses, [400, 400, 400])
    const throttled = await postKey(limited, token, { password: PASSWORD })
    globalErrorOf(t, throttled, 429)
    t.match(throttled.headers['retry-after'], /^\d+$/)
    const elsewhere = await call(
      limited,
      'PUT',
      '/account/password',
      { currentPassword: PASSWORD, newPassword: OTHER_PASSWORD },
      bearer(token),
    )
    t.equal(elsewhere.statusCode, 429, 'the attempts of all routes count together')
  })

  t.test('the route has the limit of routes that compare passwords', async t => {
    const limited = await build(t, {
      ...options,
      env: { DATABASE_URL: await newDatabase(t), RATE_LIMIT: 'on' },
      rateLimits: { ...RATE_LIMITS, perAddress: perAddress({ password: 2 }) },
    })
    const { token } = await signUp(limited)
    const statuses: number[] = []
    for (let request = 0; request < 3; request += 1) statuses.push((await postKey(limited, token)).statusCode)
    t.same(statuses, [201, 201, 429])
  })

  /** The creation of keys and the end of sessions, in the order of their commits. */
  const changesOf = async (userId: string): Promise<string[]> =>
    (await getEvents(app, { userId, sort: 'at', limit: 100 }))
      .json()
      .results.map(({ type }: AuditLine) => type)
      .filter((type: string) => ['api-key.created', 'sessions.ended', 'password.changed'].includes(type))

  t.test('100 races with the end of the session: an ended session creates no key', async t => {
    const wrong: string[] = []
    for (const round of rounds) {
      const { id, email, token } = await signUp(app)
      const isPassword = round % 3 !== 0
      const end = () =>
        isPassword
          ? call(
              app,
              'PUT',
              '/account/password',
              { currentPassword: PASSWORD, newPassword: OTHER_PASSWORD },
              bearer(token),
            )
          : app.inject({ method: 'DELETE', url: `/admin/users/${id}/sessions`, headers: asAdmin })
      const payload = round % 2 === 0 ? {} : { password: PASSWORD }
      const [created, ended] = await race(round, () => postKey(app, token, payload), end)
      const password = isPassword && ended.statusCode === 200 ? OTHER_PASSWORD : PASSWORD
      const session: string = (await signIn(app, email, password)).json().accessToken
      const keys = await listKeys(app, session)
      const expected = created.statusCode === 201 ? 1 : 0
      if (keys.length !== expected || ![201, 400, 401].includes(created.statusCode))
        wrong.push(`${round}: ${created.statusCode} ${created.body}, ${keys.length} keys`)
      const order = await until(
        () => changesOf(id),
        types => types.length === expected + (ended.statusCode < 300 ? 1 : 0),
        DEADLINE,
      )
      if (order.lastIndexOf('api-key.created') > 0) wrong.push(`${round}: ${order}`)
      const late = await postKey(app, token, payload)
      if (late.statusCode !== 401) wrong.push(`${round}: ${late.statusCode} after the end`)
    }
    t.same(wrong, [])
  })
})
