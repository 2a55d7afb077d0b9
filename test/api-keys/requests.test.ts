/**
 * Requests with API keys: gates, cookies, rate limits, last requests (docs/design.md, "Tokens and sessions", "Hot path" and "Machine
 * callers").
 */
import type { FastifyInstance } from 'fastify'
import pg from 'pg'
import t from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { accountOf, call } from '../support/account-routes.ts'
import { createKey, listKeys, revokeKey } from '../support/api-keys.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  cookie,
  manualClock,
  PASSWORD,
  type SignedUp,
  signUp,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { perAddress } from '../support/limits.ts'
import { until } from '../support/until.ts'

const MINUTE = 60_000

/** The text of a statement of pg. */
const textOf = (statement: unknown): string =>
  typeof statement === 'string' ? statement : String((statement as { text?: unknown } | undefined)?.text)

/** Milliseconds until a condition that does not come true counts as failed. */
const DEADLINE = 10_000

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const DATABASE_URL = await newDatabase(t)
  const options = { clock: clock.now, env: { DATABASE_URL }, hasher: quickHashing }
  const app = await build(t, options)
  /** The last use of the only key of a user, once the background write has stored it. */
  const lastUseOnceAt = (from: FastifyInstance, { token }: SignedUp, at: string) =>
    until(
      async () => (await listKeys(from, token))[0]?.lastUsedAt,
      value => value === at,
      DEADLINE,
    )
  const iso = () => new Date(clock.now()).toISOString()

  t.test('a key works as cookie ACCESS_TOKEN, and the rules of cookies apply', async t => {
    const user = await signUp(app)
    const { token } = await createKey(app, user.token)
    const put = (headers: Record<string, string>) =>
      call(app, 'PUT', '/account', { firstName: 'Ada' }, headers)
    const foreign = { origin: 'https://elsewhere.example' }
    t.match((await app.inject({ url: '/account', headers: cookie(token) })).json(), { id: user.id })
    t.equal((await put(cookie(token))).statusCode, 200)
    t.equal((await put({ ...cookie(token), ...foreign })).statusCode, 403)
    t.equal((await put({ ...bearer(token), ...foreign })).statusCode, 200)
    const invalid = { ...cookie('x'), ...bearer(token) }
    t.equal((await app.inject({ url: '/account', headers: invalid })).statusCode, 401, 'the cookie counts')
  })

  t.test('a key is looked up once, then it is found in memory', async t => {
    const user = await signUp(app)
    const { token } = await createKey(app, user.token)
    // Starts after these changes, so that no late notification of them empties its cache.
    const other = await build(t, options)
    const { authenticator, storage } = other.services
    // On PostgreSQL nothing is cached before the invalidation feed is connected.
    const isCaching = () => authenticator.isCaching
    t.ok(await until(isCaching, Boolean, DEADLINE))
    // On SQLite the writer thread reports, when it starts, that earlier changes are unknown.
    await storage.ping()
    const { apiKeys, sessions } = storage
    const lookups = t.capture(apiKeys, 'find', apiKeys.find)
    const sessionLookups = t.capture(sessions, 'find', sessions.find)
    const statements = t.capture(pg.Client.prototype, 'query', pg.Client.prototype.query)
    for (let request = 0; request < 10; request += 1) t.equal(await accountStatus(other, token), 200)
    t.equal(lookups().length, 1)
    t.equal(sessionLookups().length, 0)
    const ofKeys = statements().filter(({ args }) => /\bapi_keys WHERE digest\b/.test(textOf(args[0])))
    t.equal(ofKeys.length, DATABASE_URL.startsWith('postgres') ? 1 : 0, 'one statement for key and user')
  })

  t.test('public and admin routes treat a key like every token (§5.1.3)', async t => {
    const user = await signUp(app)
    const { token, apiKey } = await createKey(app, user.token)
    t.equal((await app.inject({ url: '/health', headers: bearer(token) })).statusCode, 200)
    t.equal((await app.inject({ url: '/admin/users', headers: bearer(token) })).statusCode, 401)
    t.equal(
      (await app.inject({ url: '/admin/users', headers: { ...bearer(token), ...asAdmin } })).statusCode,
      200,
    )
    const signedIn = await call(
      app,
      'POST',
      '/account/sign-in',
      { email: user.email, password: PASSWORD },
      bearer(token),
    )
    t.equal(signedIn.statusCode, 200)
    await revokeKey(app, user.token, apiKey.id)
    t.equal((await app.inject({ url: '/health', headers: bearer(token) })).statusCode, 200)
    t.equal(
      (await app.inject({ url: '/admin/users', headers: { ...bearer(token), ...asAdmin } })).statusCode,
      200,
    )
  })

  t.test('a limited key gets 429, not 401', async t => {
    const limited = await build(t, {
      ...options,
      env: { DATABASE_URL: await newDatabase(t), RATE_LIMIT: 'on' },
      rateLimits: { ...RATE_LIMITS, perAddress: perAddress({ 'sign-in': 2 }) },
    })
    const user = await signUp(limited)
    const { token } = await createKey(limited, user.token)
    const signIn = () =>
      call(limited, 'POST', '/account/sign-in', { email: user.email, password: PASSWORD }, bearer(token))
    t.equal((await signIn()).statusCode, 200)
    t.equal((await signIn()).statusCode, 200)
    const refused = await signIn()
    globalErrorOf(t, refused, 429)
    t.match(refused.headers['retry-after'], /^\d+$/)
    t.equal(await accountStatus(limited, token), 200)
  })

  t.test('a request with a key is the last request of its user at once (§5.1.2)', async t => {
    const user = await signUp(app)
    const { token } = await createKey(app, user.token)
    clock.advance(MINUTE)
    t.equal((await accountOf(app, token)).lastRequestAt, iso())
    clock.advance(1)
    t.equal((await accountOf(app, token)).lastRequestAt, iso())
  })

  t.test('`lastUsedAt` survives a restart and never moves back', async t => {
    const clock = manualClock()
    const url = await newDatabase(t)
    const build2 = () => build(t, { ...options, clock: clock.now, env: { DATABASE_URL: url } })
    const before = await build2()
    const user = await signUp(before)
    const { token } = await createKey(before, user.token)
    clock.advance(10 * MINUTE)
    const latest = new Date(clock.now()).toISOString()
    t.equal(await accountStatus(before, token), 200)
    await before.close()
    const after = await build2()
    t.equal((await listKeys(after, user.token))[0]?.lastUsedAt, latest)
    clock.advance(-5 * MINUTE)
    t.equal(await accountStatus(after, token), 200)
    await after.close()
    const again = await build2()
    t.equal((await listKeys(again, user.token))[0]?.lastUsedAt, latest)
  })

  t.test('`lastUsedAt` is written in the background, for other instances', async t => {
    const other = await build(t, options)
    const user = await signUp(app)
    const { token } = await createKey(app, user.token)
    clock.advance(60 * MINUTE)
    const at = iso()
    t.equal(await accountStatus(app, token), 200)
    t.equal(await lastUseOnceAt(other, user, at), at)
  })

  t.test(
    'a request without the scope, and one on a public route, are requests of the key (§5.1.2)',
    async t => {
      for (const [method, url] of [
        ['GET', '/health'],
        ['GET', '/users'],
        ['DELETE', '/account'],
      ] as const) {
        const user = await signUp(app)
        const { token } = await createKey(app, user.token, { scopes: ['account:read'] })
        clock.advance(MINUTE)
        const at = iso()
        await app.inject({ method, url, headers: bearer(token) })
        clock.advance(MINUTE)
        t.equal(await lastUseOnceAt(app, user, at), at, `${method} ${url}`)
      }
    },
  )
})
