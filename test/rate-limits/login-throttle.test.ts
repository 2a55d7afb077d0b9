/** The login throttle (rate limits; docs/design.md, "Account life cycle"): growing waits for those who guess, and for no one else. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { ServiceError } from '#base/errors'
import { dummyHash } from '#core/passwords/our-hash'
import { type LoginThrottleLimits, RATE_LIMITS } from '#core/rate-limits/limits'
import { bearer, freshEmail, PASSWORD, signIn, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { perAddress } from '../support/limits.ts'
import { query } from '../support/postgres.ts'

const WRONG = 'not the pass phrase'
const NEW = 'another long pass phrase 8'

const HOME = '2001:db8:0:7::1'
const SAME_HOME = '2001:db8:0:7:ffff::2'
const JOURNEY = '198.51.100.7'
const ELSEWHERE = '198.51.100.8'
const STRANGER = '203.0.113.9'

/** Two limits without a wait, and a wait whose end no test sees. */
const LONG: LoginThrottleLimits = { freeAttempts: 2, window: 900, initialDelay: 600, maxDelay: 900 }

const guessing = (loginThrottle: LoginThrottleLimits) => ({
  env: { RATE_LIMIT: 'on' },
  rateLimits: {
    ...RATE_LIMITS,
    perAddress: perAddress({ 'sign-in': 1_000, password: 1_000, mail: 1_000 }),
    loginThrottle,
  },
})

const changePassword = (
  app: FastifyInstance,
  token: string,
  currentPassword: string,
): Promise<LightMyRequestResponse> =>
  app.inject({
    method: 'PUT',
    url: '/account/password',
    headers: bearer(token),
    payload: { currentPassword, newPassword: NEW },
  })

const signInWith = (
  app: FastifyInstance,
  token: string,
  email: string,
  password: string,
): Promise<LightMyRequestResponse> =>
  app.inject({
    method: 'POST',
    url: '/account/sign-in',
    headers: bearer(token),
    payload: { email, password },
  })

/** Guesses until one is throttled. @returns the statuses of the others, and the throttled response. */
const exhaust = async (guess: () => Promise<LightMyRequestResponse>) => {
  const statuses: number[] = []
  for (;;) {
    const response = await guess()
    if (response.statusCode === 429) return { statuses, rejected: response }
    statuses.push(response.statusCode)
    if (statuses.length > 20) throw new Error('nothing was throttled')
  }
}

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  t.test('each failure doubles the wait, and the correct password resets it', async t => {
    const hashing = {
      refusal: () => null,
      hash: async () => dummyHash(),
      verify: async (password: string) => password === PASSWORD,
      close: async () => undefined,
    }
    const app = await build(t, {
      ...guessing({ freeAttempts: 1, window: 60, initialDelay: 2, maxDelay: 3 }),
      hasher: hashing,
    })
    const { email } = await signUp(app)
    const guess = () => signIn(app, email, WRONG)
    const waits: number[] = []
    for (let round = 0; round < 3; round += 1) {
      const { statuses, rejected } = await exhaust(guess)
      t.strictSame(statuses, round === 0 ? [401, 401] : [401], 'free ones first, then one after each wait')
      t.equal(globalErrorOf(t, rejected, 429), 'Too many requests')
      const wait = Number(rejected.headers['retry-after'])
      waits.push(wait)
      t.equal((await signIn(app, email)).statusCode, 429, 'the right password waits too')
      await sleep(wait * 1_000)
    }
    t.strictSame(waits, [2, 3, 3], 'twice as long, up to the longest')
    t.equal((await signIn(app, email)).statusCode, 200)
    t.strictSame((await exhaust(guess)).statuses, [401, 401], 'then as if nothing had been')
  })

  t.test('throttling reveals nothing: unknown, wrong and disabled accounts behave the same', async t => {
    const app = await build(t, guessing(LONG))
    const { email } = await signUp(app)
    const disabled = await signUp(app)
    await updateUser(app, disabled.id, { disabled: true })
    const seen = []
    for (const who of [freshEmail(), email, disabled.email]) {
      const { statuses, rejected } = await exhaust(() => signIn(app, who, WRONG))
      const right = await signIn(app, who)
      const { date: _date, 'x-request-id': _id, ratelimit: _left, ...headers } = rejected.headers
      const waits = Number(headers['retry-after'])
      t.ok(waits > LONG.initialDelay - 60 && waits <= LONG.initialDelay)
      seen.push({
        statuses,
        body: rejected.body,
        headers: { ...headers, 'retry-after': 0 },
        right: right.body,
      })
    }
    t.strictSame(seen[0]?.statuses, [401, 401, 401])
    t.strictSame(seen[1], seen[0])
    t.strictSame(seen[2], seen[0])
  })

  t.test('an account has one count for every spelling of its e-mail, and others do not wait', async t => {
    const app = await build(t, guessing(LONG))
    const { email } = await signUp(app)
    const other = await signUp(app)
    await exhaust(() => signIn(app, email, WRONG))
    t.equal((await signIn(app, ` ${email.toUpperCase()} `, WRONG)).statusCode, 429)
    t.equal((await signIn(app, other.email)).statusCode, 200)
  })

  t.test("signed-in users are not throttled by other clients' attempts", async t => {
    const app = await build(t, guessing(LONG))
    const { email, token } = await signUp(app)
    const otherUser = await signUp(app)
    await exhaust(() => signInWith(app, otherUser.token, email, WRONG))
    t.equal((await signIn(app, email)).statusCode, 429)
    t.equal((await signInWith(app, `${token}x`, email, PASSWORD)).statusCode, 429, 'a token that is none')
    const created = await app.inject({
      method: 'POST',
      url: '/account/api-keys',
      headers: bearer(token),
      payload: { name: 'a key' },
    })
    t.equal((await signInWith(app, created.json().token, email, PASSWORD)).statusCode, 429, 'an API key')
    t.equal((await signInWith(app, token, email, PASSWORD)).statusCode, 200)
    t.equal((await changePassword(app, token, PASSWORD)).statusCode, 200)
  })

  t.test('a stolen session cannot try passwords without end, over any route', async t => {
    const app = await build(t, guessing(LONG))
    const { email, token } = await signUp(app)
    const { statuses, rejected } = await exhaust(() => changePassword(app, token, WRONG))
    t.strictSame(statuses, [400, 400, 400])
    globalErrorOf(t, rejected, 429)
    t.equal((await changePassword(app, token, PASSWORD)).statusCode, 429)
    t.equal((await signInWith(app, token, email, PASSWORD)).statusCode, 429)
    t.equal((await signIn(app, email)).statusCode, 200, 'the owner signs in as ever')
    t.equal((await app.inject({ url: '/account', headers: bearer(token) })).statusCode, 200)
  })

  t.test('a hundred concurrent guesses on two instances pass no more than sequential ones', async t => {
    const env = { ...guessing(LONG).env, DATABASE_URL: await newDatabase(t) }
    const apps = [await build(t, { ...guessing(LONG), env }), await build(t, { ...guessing(LONG), env })]
    const email = freshEmail()
    const shared = env.DATABASE_URL.startsWith('postgres')
    const responses = await Promise.all(
      Array.from({ length: 100 }, (_, index) => signIn(apps[index % 2] as FastifyInstance, email, WRONG)),
    )
    const counts = [401, 429].map(
      status => responses.filter(({ statusCode }) => statusCode === status).length,
    )
    // On SQLite, processes that share a file count separately.
    t.strictSame(counts, shared ? [3, 97] : [6, 94])
  })

  t.test('attempts that were not compared do not count', async t => {
    let busy = true
    const hash = async (): Promise<never> => {
      throw new ServiceError('overloaded')
    }
    const verify = async (): Promise<boolean> => (busy ? hash() : false)
    const app = await build(t, {
      ...guessing(LONG),
      hasher: { refusal: () => null, hash, verify, close: async () => undefined },
    })
    const email = freshEmail()
    for (let time = 0; time < 5; time += 1) t.equal((await signIn(app, email, WRONG)).statusCode, 503)
    busy = false
    for (let time = 0; time < 2; time += 1) t.equal((await signIn(app, email, WRONG)).statusCode, 401)
    busy = true
    t.equal((await signIn(app, email, WRONG)).statusCode, 503)
    busy = false
    t.equal((await signIn(app, email, WRONG)).statusCode, 429, 'but what had to wait counts, compared or not')
  })

  /** A user who has signed in at home and on a journey, and everybody's requests, through a trusted proxy. */
  const household = async (t: Test) => {
    const { env, ...limits } = guessing(LONG)
    const app = await build(t, { ...limits, env: { ...env, TRUST_PROXY: '10.0.0.1' } })
    const send = (ip: string, method: 'POST' | 'PUT', url: string, payload: object, token?: string) =>
      app.inject({
        method,
        url,
        payload,
        remoteAddress: '10.0.0.1',
        headers: { 'x-forwarded-for': ip, ...(token !== undefined && bearer(token)) },
      })
    const email = freshEmail()
    const enter = (ip: string, password = PASSWORD) =>
      send(ip, 'POST', '/account/sign-in', { email, password })
    const signedUp = await send(HOME, 'POST', '/account/sign-up', { email, password: PASSWORD })
    t.equal((await enter(JOURNEY)).statusCode, 200)
    return { send, enter, token: signedUp.json().accessToken as string }
  }

  t.test(
    'F10, S7: a stranger cannot keep an owner out who has signed in from the network before',
    async t => {
      const { enter } = await household(t)
      const { statuses } = await exhaust(() => enter(STRANGER, WRONG))
      t.strictSame(statuses, [401, 401, 401], 'exactly the configured attempts, and the first one that waits')
      for (let round = 0; round < 5; round += 1) {
        t.equal((await enter(round % 2 ? HOME : SAME_HOME)).statusCode, 200, `round ${round}`)
        t.equal((await enter(STRANGER, WRONG)).statusCode, 429, 'it ends no wait of strangers')
        t.equal((await enter(STRANGER)).statusCode, 429)
      }
      t.equal((await enter(ELSEWHERE)).statusCode, 429, 'from where nobody has signed in')
      t.strictSame(
        (await exhaust(() => enter(HOME, WRONG))).statuses,
        [401],
        'a stranger who guesses on a known network waits, too',
      )
      t.equal((await enter(HOME)).statusCode, 429)
      t.equal((await enter(JOURNEY)).statusCode, 200, 'each network by itself')
    },
  )

  t.test('a stolen session does not keep its owner from a re-authentication', async t => {
    const { send, token } = await household(t)
    const prove = (ip: string, password: string) =>
      send(ip, 'POST', '/account/reauthenticate', { password }, token)
    t.strictSame((await exhaust(() => prove(STRANGER, WRONG))).statuses, [400, 400, 400])
    for (let round = 0; round < 3; round += 1) t.equal((await prove(HOME, PASSWORD)).statusCode, 204)
    t.equal((await prove(STRANGER, PASSWORD)).statusCode, 429)
  })

  t.test('a new password makes the other networks of a user unknown', async t => {
    const { send, enter, token } = await household(t)
    const passwords = { currentPassword: PASSWORD, newPassword: NEW }
    t.equal((await send(HOME, 'PUT', '/account/password', passwords, token)).statusCode, 200)
    await exhaust(() => enter(STRANGER, WRONG))
    t.equal((await enter(JOURNEY, NEW)).statusCode, 429)
    t.equal((await enter(HOME, NEW)).statusCode, 200)
  })

  t.test('no e-mail is stored as a counting key', async t => {
    const DATABASE_URL = await newDatabase(t)
    if (!DATABASE_URL.startsWith('postgres')) return
    const app = await build(t, { ...guessing(LONG), env: { RATE_LIMIT: 'on', DATABASE_URL } })
    await exhaust(() => signIn(app, `${'x'.repeat(60)}@${'long.'.repeat(36)}example`, WRONG))
    const rows = await query(DATABASE_URL, 'SELECT key FROM rate_limits')
    t.ok(rows.length >= 3)
    t.notMatch(JSON.stringify(rows), /@|xxx/)
  })
})
