/** One limit for the codes of a user, wherever they are sent (docs/design.md, "Second factors"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { ServiceError } from '#base/errors'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { call, forgot } from '../support/account-routes.ts'
import { allEvents } from '../support/admin-routes.ts'
import {
  addTotp,
  beginTotp,
  codeAt,
  confirmTotp,
  ENCRYPTION_KEY,
  STEP,
  signInWith,
} from '../support/authenticator-apps.ts'
import { bearer, confirmedUser, manualClock, PASSWORD, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { perAddress } from '../support/limits.ts'
import { mailbox, SUBJECT } from '../support/mailbox.ts'
import { until } from '../support/until.ts'

/** Guesses in all, on each engine. The clock stands still, so more would show nothing else. */
const GUESSES = 1_000

const NEW = 'another long pass phrase 8'

/** Sign-in, password reset and re-authentication. */
const ROUTES = 3

/** Guesses that are sent at once. */
const BATCH = 200

/** Milliseconds until a missing event counts as a failure. */
const DEADLINE = 10_000

/** The free attempts of production, then a wait whose end no test sees. */
const LIMITS = { freeAttempts: 5, window: 900, initialDelay: 600, maxDelay: 900 }

/** The free attempts, and the first one of those that wait. */
const COMPARED = LIMITS.freeAttempts + 1

const ON = {
  env: { RATE_LIMIT: 'on', ENCRYPTION_KEY },
  rateLimits: { ...RATE_LIMITS, perAddress: perAddress(), loginThrottle: LIMITS },
}

const reset = (app: FastifyInstance, token: string, code: string) =>
  call(app, 'POST', '/account/reset-password', { token, password: NEW, code })

const renew = (app: FastifyInstance, token: string, code: string) =>
  call(app, 'POST', '/account/reauthenticate', { code }, bearer(token))

/** How often each outcome came: `succeeded`, or the name of an error. Inputs are sent in batches. */
const outcomesOf = async <Input>(
  inputs: readonly Input[],
  send: (input: Input, index: number) => Promise<unknown>,
): Promise<Record<string, number>> => {
  const counts: Record<string, number> = {}
  const note = (outcome: string): void => {
    counts[outcome] = (counts[outcome] ?? 0) + 1
  }
  for (let start = 0; start < inputs.length; start += BATCH)
    await Promise.all(
      inputs.slice(start, start + BATCH).map((input, index) =>
        send(input, start + index).then(
          () => note('succeeded'),
          error => note(error instanceof ServiceError ? error.code : String(error)),
        ),
      ),
    )
  return counts
}

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const env = { ...ON.env, DATABASE_URL: await newDatabase(t) }
  const app = await build(t, { ...ON, env, clock: clock.now })
  const mails = mailbox(app)

  const withApp = async () => {
    const user = await confirmedUser(app)
    const added = await addTotp(app, user.token)
    clock.advance(STEP)
    return { ...user, ...added }
  }

  t.test('of many guesses of a network on all routes six are compared', async t => {
    const { id, email, token, secret, code, recoveryCodes } = await withApp()
    await forgot(app, email)
    const mailed = await mails.token(email, 'passwordReset')
    const accepted = new Set([-1, 0, 1].map(steps => codeAt(secret, clock.now() + steps * STEP)))
    /** On each route in turn. */
    const send = (guess: string, index: number) => {
      if (index % ROUTES === 0) return signInWith(app, email, guess)
      return index % ROUTES === 1 ? reset(app, mailed, guess) : renew(app, token, guess)
    }
    const client = { ip: '127.0.0.1', userAgent: null }
    const { passwordSignIns, passwordResets, reauthentication, authenticator } = app.services
    const principal = await authenticator.authenticate(token)
    if (principal === null) throw new Error('no session')
    /** The same without HTTP, which takes longer. */
    const guessOf = (code: string, index: number): Promise<unknown> => {
      if (index % ROUTES === 0)
        return passwordSignIns.signIn({ email, password: PASSWORD, code }, client, null)
      if (index % ROUTES === 1) return passwordResets.reset(mailed, NEW, code, client)
      return reauthentication.renew(principal, {
        code,
        password: undefined,
        ip: client.ip,
        signal: undefined,
      })
    }
    const guesses = Array.from({ length: GUESSES }, (_, index) =>
      String((index * 7_919) % 1_000_000).padStart(6, '0'),
    ).filter(guess => !accepted.has(guess))
    const first = guesses.slice(0, COMPARED)
    const statuses = []
    for (const [index, guess] of first.entries()) statuses.push((await send(guess, index)).statusCode)
    t.strictSame(statuses, [401, 401, 400, 401, 401, 400], 'compared')
    const others = guesses.slice(COMPARED)
    t.strictSame(await outcomesOf(others, guessOf), { tooManyRequests: others.length })

    for (let route = 0; route < ROUTES; route += 1)
      t.equal(globalErrorOf(t, await send(code(), route), 429), 'Too many requests', 'right ones wait too')
    const [one = '', other = ''] = recoveryCodes
    t.equal((await signInWith(app, email, one)).statusCode, 200, 'a recovery code does not wait')
    t.equal((await renew(app, token, other)).statusCode, 204)
    t.equal((await signInWith(app, email, one)).statusCode, 401, 'it is used up')
    const missing = await signInWith(app, email)
    t.strictSame([missing.statusCode, missing.body], [401, '{"errors":{"code":["is required"]}}'])
    t.equal((await renew(app, token, code())).statusCode, 429, 'the correct password ends no wait')
    const events = () => allEvents(app, { userId: id, type: 'session.sign-in-throttled' })
    t.ok((await until(events, found => found.length > 0, DEADLINE)).length >= 1)
  })

  t.test('an attempt with the correct password and no code does not count', async t => {
    const { email, code } = await withApp()
    const wrong = code(3)
    const statuses = []
    for (const sent of [wrong, wrong, wrong, wrong, ...Array(20).fill(undefined), wrong, wrong, wrong])
      statuses.push((await signInWith(app, email, sent)).statusCode)
    t.strictSame(statuses, [...Array(26).fill(401), 429])
  })

  t.test('a right code resets the count, and other users do not wait', async t => {
    const [{ email, code }, other] = [await withApp(), await withApp()]
    const guess = async (times: number) => {
      const statuses = []
      for (let time = 0; time < times; time += 1)
        statuses.push((await signInWith(app, email, code(3))).statusCode)
      return statuses
    }
    t.strictSame(await guess(4), Array(4).fill(401))
    t.equal((await signInWith(app, email, code())).statusCode, 200)
    t.strictSame(await guess(7), [...Array(6).fill(401), 429])
    t.equal((await signInWith(app, other.email, other.code())).statusCode, 200)
  })

  t.test('S7: codes of strangers keep nobody out who has signed in from the network before', async t => {
    const { email, token, code } = await withApp()
    const stranger = (code: string) =>
      app.inject({
        method: 'POST',
        url: '/account/sign-in',
        remoteAddress: '203.0.113.9',
        payload: { email, password: PASSWORD, code },
      })
    const statuses = []
    for (let time = 0; time < 8; time += 1) statuses.push((await stranger(code(3))).statusCode)
    t.strictSame(statuses, [...Array(COMPARED).fill(401), 429, 429])
    await forgot(app, email)
    const mailed = await mails.token(email, 'passwordReset')
    t.equal((await signInWith(app, email, code())).statusCode, 200)
    clock.advance(STEP)
    t.equal((await renew(app, token, code())).statusCode, 204)
    clock.advance(STEP)
    t.equal((await stranger(code())).statusCode, 429)
    t.equal((await reset(app, mailed, code())).statusCode, 200)
  })

  t.test('codes that confirm an app are counted too', async t => {
    const { token } = await signUp(app)
    const begun = await beginTotp(app, token)
    const statuses = []
    for (const steps of [3, 3, 3, 3, 3, 3, 3, 0])
      statuses.push((await confirmTotp(app, token, begun.code(steps))).statusCode)
    t.strictSame(statuses, [...Array(6).fill(400), 429, 429])
  })

  // The last test: it closes the app.
  t.test('the user is mailed once a day', async t => {
    const [{ email }, without] = [await withApp(), await signUp(app)]
    for (let time = 0; time < 12; time += 1) {
      await signInWith(app, email, '12345')
      await renew(app, without.token, '12345')
    }
    const subjects = await mails.final(email)
    t.equal(subjects.filter(subject => subject === SUBJECT.wrongCodes).length, 1)
    t.notOk((await mails.final(without.email)).includes(SUBJECT.wrongCodes), 'not without an app')
  })
})
