/** The login throttle in the audit log and the service's log, and that responses do not reveal accounts. */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { type LoginThrottleLimits, RATE_LIMITS } from '#core/rate-limits/limits'
import { type AuditLine, allEvents } from '../support/admin-routes.ts'
import { asAdmin, bearer, freshEmail, logCapture, manualClock, signIn, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { perAddress } from '../support/limits.ts'
import { until } from '../support/until.ts'

const WRONG = 'not the pass phrase'

/** Milliseconds until a missing event counts as a failure. Events are recorded up to half a second late. */
const DEADLINE = 10_000

const LONG: LoginThrottleLimits = { freeAttempts: 2, window: 900, initialDelay: 600, maxDelay: 900 }
const ON = {
  env: { RATE_LIMIT: 'on', MAIL_URL: 'off' },
  rateLimits: {
    ...RATE_LIMITS,
    perAddress: perAddress({ 'sign-in': 1_000, password: 1_000, mail: 1_000 }),
    loginThrottle: LONG,
  },
}
const TYPE = 'session.sign-in-throttled'

const throttledEvents = (app: FastifyInstance): Promise<AuditLine[]> => allEvents(app, { type: TYPE })

const some = (app: FastifyInstance, count: number): Promise<AuditLine[]> =>
  until(
    () => throttledEvents(app),
    events => events.length >= count,
    DEADLINE,
  )

/** Guesses until `rejections` attempts are throttled. */
const exhaust = async (guess: () => Promise<LightMyRequestResponse>, rejections = 5): Promise<void> => {
  let rejected = 0
  while (rejected < rejections) rejected += (await guess()).statusCode === 429 ? 1 : 0
}

await onEnginesOfRun(t, async (t, { build }) => {
  t.test('a throttled account has one event; an unknown e-mail has none', async t => {
    const app = await build(t, ON)
    const { id, email } = await signUp(app)
    const unknown = freshEmail('nobody')
    await exhaust(() => signIn(app, unknown, WRONG))
    await exhaust(() => signIn(app, email, WRONG))
    const other = await signUp(app)
    await exhaust(() => signIn(app, other.email, WRONG))
    // The last request: earlier ones and their deferred work are done by then or within the same half second.
    const events = await some(app, 2)
    const actor = { type: 'anonymous', id: null }
    const expected = [id, other.id].map(userId => ({
      type: TYPE,
      actor,
      userId,
      ip: '127.0.0.1',
      details: null,
    }))
    t.equal(events.length, 2)
    for (const event of expected)
      t.match(
        events.find(({ userId }) => userId === event.userId),
        event,
      )
    t.notMatch(JSON.stringify(await allEvents(app)), /@/, 'no e-mail')
  })

  t.test('the actor is the signed-in user when re-authentication fails', async t => {
    const app = await build(t, ON)
    const { id, email, token } = await signUp(app)
    const guess = () =>
      app.inject({
        method: 'PUT',
        url: '/account/password',
        headers: bearer(token),
        payload: { currentPassword: WRONG, newPassword: 'another long pass phrase 8' },
      })
    await exhaust(guess)
    t.match(await some(app, 1), [{ actor: { type: 'user', id }, userId: id, ip: '127.0.0.1' }])
    await exhaust(() => signIn(app, email, WRONG))
    t.match(await some(app, 2), [{ actor: { type: 'anonymous' } }, { actor: { type: 'user' } }], 'and others')
  })

  t.test('further attempts in the same wait record no further events', async t => {
    const clock = manualClock()
    const app = await build(t, { ...ON, clock: clock.now })
    const { email } = await signUp(app)
    await exhaust(() => signIn(app, email, WRONG))
    await some(app, 1)
    // Beyond the cache of this process: the shared count decides.
    clock.advance(61_000)
    await exhaust(() => signIn(app, email, WRONG))
    const later = await signUp(app)
    await exhaust(() => signIn(app, later.email, WRONG))
    t.match(await some(app, 2), [{ userId: later.id }, {}])
    await app.close()
  })

  t.test('the response does not reveal whether the account exists', async t => {
    const app = await build(t, ON)
    const { email } = await signUp(app)
    const rejectionOf = async (of: string) => {
      await exhaust(() => signIn(app, of, WRONG), 1)
      const { statusCode, body, headers } = await signIn(app, of, WRONG)
      return { statusCode, body, names: Object.keys(headers).sort() }
    }
    t.strictSame(await rejectionOf(email), await rejectionOf(freshEmail('nobody')))
  })

  t.test('the log has one line a minute per address, with the number of further attempts', async t => {
    const log = logCapture()
    const clock = manualClock()
    const app = await build(t, {
      ...ON,
      env: { ...ON.env, LOG_LEVEL: 'debug' },
      clock: clock.now,
      logStream: log.stream,
    })
    const { email } = await signUp(app)
    await exhaust(() => signIn(app, email, WRONG), 4)
    clock.advance(60_000)
    await exhaust(() => signIn(app, email, WRONG), 2)
    const lines = log.records().filter(({ status }) => status === 429)
    t.equal(lines.length, 6, 'one line for each at debug')
    const line = { limit: 'login-attempts', ip: '127.0.0.1', msg: 'Too many requests' }
    t.match(
      lines.filter(({ level }) => level === 30),
      [
        { ...line, suppressed: 0 },
        { ...line, suppressed: 3 },
      ],
    )
    t.notMatch(log.text(), email)
    t.equal((await app.inject({ url: `/admin/events?type=${TYPE}`, headers: asAdmin })).statusCode, 200)
  })
})
