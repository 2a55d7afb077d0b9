/** Rate limits per address (rate limits; docs/design.md, "Account life cycle"): counting, headers, and the end of the window. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { RATE_LIMITS, type RateLimits } from '#core/rate-limits/limits'
import { createKey } from '../support/api-keys.ts'
import { asAdmin, bearer, build, freshEmail, logCapture, PASSWORD, signIn, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { perAddress } from '../support/limits.ts'
import { newDatabase } from '../support/postgres.ts'
import { createProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

const ON = { RATE_LIMIT: 'on' }

/** Window in seconds: long for tests that must not see its end, short for those that wait for it. */
const LONG = 600
const SHORT = 3

/** Milliseconds until a condition that does not come true counts as failed. */
const DEADLINE = 60_000

const limits = (window: number, points: number): RateLimits => ({
  ...RATE_LIMITS,
  perAddress: perAddress({ 'sign-in': points, password: 1_000, mail: points }, window),
})

/** A route with the limit of mails that does not use the store. */
const withMailRoute = (app: FastifyInstance): void => {
  app.register(async scope => {
    scope.get('/test/mail', { config: { rateLimit: 'mail' } }, async () => ({}))
  })
}

const mail = (app: FastifyInstance, remoteAddress: string, headers = {}): Promise<LightMyRequestResponse> =>
  app.inject({ url: '/test/mail', remoteAddress, headers })

const wrongSignIn = (app: FastifyInstance, remoteAddress = '192.0.2.1'): Promise<LightMyRequestResponse> =>
  app.inject({
    method: 'POST',
    url: '/account/sign-in',
    remoteAddress,
    payload: { email: freshEmail(), password: PASSWORD },
  })

const rename = (
  app: FastifyInstance,
  headers: Record<string, string>,
  remoteAddress = '192.0.2.1',
): Promise<LightMyRequestResponse> =>
  app.inject({ method: 'PUT', url: '/account', remoteAddress, headers, payload: { firstName: 'Ada' } })

const statuses = async (responses: Iterable<Promise<LightMyRequestResponse>>): Promise<number[]> =>
  (await Promise.all(responses)).map(({ statusCode }) => statusCode)

/** The remaining requests and seconds of `RateLimit`. */
const leftOf = (name: string, { headers }: LightMyRequestResponse): { r: number; t: number } => {
  const [, r, t] = new RegExp(`^"${name}";r=(\\d+);t=(\\d+)$`).exec(String(headers.ratelimit)) ?? []
  return { r: Number(r), t: Number(t) }
}

/** Milliseconds that PostgreSQL has to count a request, before the instance counts it alone. */
const QUERY_TIMEOUT = 1_000

/** Sends requests from one address, and from another one if a busy machine took so long that instances may have counted alone. */
const countedTogether = async (
  send: (address: string) => Iterable<Promise<LightMyRequestResponse>>,
): Promise<number[]> => {
  let host = 0
  const attempt = async () => {
    const began = performance.now()
    host += 1
    const found = await statuses(send(`192.0.2.${host}`))
    return { found, took: performance.now() - began }
  }
  const { found } = await until(attempt, ({ took }) => took < QUERY_TIMEOUT, DEADLINE)
  return found
}

await onEnginesOfRun(t, async (t, { build }) => {
  t.test('each response has the policy and the remaining requests; a 429 has the wait', async t => {
    const log = logCapture()
    const app = await build(t, { env: ON, rateLimits: limits(SHORT, 2), logStream: log.stream })
    const first = await wrongSignIn(app)
    t.equal(first.statusCode, 401)
    t.equal(first.headers['ratelimit-policy'], '"sign-in";q=2;w=3')
    t.strictSame(leftOf('sign-in', first), { r: 1, t: SHORT })
    const malformed = await app.inject({
      method: 'POST',
      url: '/account/sign-in',
      remoteAddress: '192.0.2.1',
    })
    t.equal(malformed.statusCode, 400)
    t.equal(leftOf('sign-in', malformed).r, 0, 'also where the input was at fault')

    const rejected = await app.inject({
      method: 'POST',
      url: '/account/sign-in',
      remoteAddress: '192.0.2.1',
      headers: { 'content-type': 'text/plain' },
      payload: 'not looked at',
    })
    t.equal(globalErrorOf(t, rejected, 429, 'before the body is looked at'), 'Too many requests')
    const seconds = Number(rejected.headers['retry-after'])
    t.ok(seconds >= 1 && seconds <= SHORT)
    t.strictSame(leftOf('sign-in', rejected), { r: 0, t: seconds })
    await wrongSignIn(app)
    const logged = log.records().filter(({ status }) => status === 429)
    t.match(logged, [{ level: 30, limit: 'sign-in', ip: '192.0.2.1', suppressed: 0 }], 'a flood fills no log')
    t.equal((await wrongSignIn(app, '192.0.2.2')).statusCode, 401, 'another address')
    await signUp(app)
    await sleep(seconds * 1_000)
    t.equal((await wrongSignIn(app)).statusCode, 401, 'after Retry-After')
  })

  t.test('of concurrent requests exactly the remaining number passes', async t => {
    const app = await build(t, { env: ON, rateLimits: limits(LONG, 3), extend: withMailRoute })
    const responses = await countedTogether(address => Array.from({ length: 50 }, () => mail(app, address)))
    t.strictSame(responses.filter(status => status === 200).length, 3)
    t.strictSame(responses.filter(status => status === 429).length, 47)
  })

  t.test('IPv6 counts by /64, an IPv4-mapped address as IPv4', async t => {
    const app = await build(t, { env: ON, rateLimits: limits(LONG, 2), extend: withMailRoute })
    const same = ['2001:db8:0:1::1', '2001:DB8::1:ffff:ffff:ffff:ffff', '2001:0db8:0000:0001:0:0:0:2']
    t.strictSame(await statuses(same.map(ip => mail(app, ip))).then(all => all.sort()), [200, 200, 429])
    t.equal((await mail(app, '2001:db8:0:2::1')).statusCode, 200, 'the next /64')
    const mapped = ['::ffff:192.0.2.7', '192.0.2.7', '::ffff:c000:207']
    t.strictSame(await statuses(mapped.map(ip => mail(app, ip))).then(all => all.sort()), [200, 200, 429])
  })

  t.test('behind a trusted proxy the client counts, and other forwarded headers are ignored', async t => {
    const env = { ...ON, TRUST_PROXY: '10.0.0.0/8' }
    const app = await build(t, { env, rateLimits: limits(LONG, 1), extend: withMailRoute })
    const from = (client: string) => ({ 'x-forwarded-for': client })
    t.equal((await mail(app, '10.0.0.1', from('198.51.100.1'))).statusCode, 200)
    t.equal((await mail(app, '10.0.0.2', from('203.0.113.9, 198.51.100.1'))).statusCode, 429)
    t.equal((await mail(app, '10.0.0.1', from('198.51.100.2'))).statusCode, 200)
    t.equal((await mail(app, '192.0.2.1', from('198.51.100.3'))).statusCode, 200)
    t.equal(
      (await mail(app, '192.0.2.1', from('198.51.100.4'))).statusCode,
      429,
      'it is 192.0.2.1 all the same',
    )
  })

  t.test(
    'a request counts once, with HEAD and a trailing slash too, and other routes do not count',
    async t => {
      const app = await build(t, {
        env: ON,
        rateLimits: limits(LONG, 9),
        extend: app => {
          app.register(
            async scope => {
              scope.get('/', { config: { rateLimit: 'mail' } }, async () => ({}))
            },
            { prefix: '/test/slash' },
          )
        },
      })
      const requests = [
        { url: '/test/slash' },
        { url: '/test/slash/' },
        { method: 'HEAD', url: '/test/slash' },
      ] as const
      let left = 9
      for (const request of requests) {
        left -= 1
        t.equal(leftOf('mail', await app.inject(request)).r, left, JSON.stringify(request))
      }
      const { token } = await signUp(app)
      for (const response of [
        await app.inject('/health'),
        await app.inject({ url: '/account', headers: bearer(token) }),
        await app.inject({ url: '/admin/users', headers: asAdmin }),
      ]) {
        t.equal(response.statusCode, 200)
        t.notOk(response.headers.ratelimit)
      }
    },
  )

  t.test('RATE_LIMIT=off disables counting', async t => {
    const rateLimits = { ...limits(LONG, 1), writesPerUser: { points: 1, seconds: LONG } }
    const app = await build(t, { env: { RATE_LIMIT: 'off' }, rateLimits })
    const { token } = await signUp(app)
    for (let time = 0; time < 3; time += 1) {
      const { statusCode, headers } = await wrongSignIn(app)
      t.equal(statusCode, 401)
      t.notOk(headers.ratelimit ?? headers['ratelimit-policy'])
      t.equal((await rename(app, bearer(token))).statusCode, 200)
    }
  })

  t.test('the writes of a user are limited, from all addresses and with all credentials', async t => {
    const rateLimits = { ...limits(LONG, 100), writesPerUser: { points: 5, seconds: LONG } }
    const app = await build(t, { env: ON, rateLimits })
    const [{ token, email }, other] = [await signUp(app), await signUp(app)]
    const { apiKey, token: key } = await createKey(app, token, { scopes: ['account:write'] })
    const allowed = [
      await rename(app, bearer(token), '192.0.2.1'),
      await rename(app, bearer(key), '192.0.2.2'),
      await app.inject({ method: 'POST', url: '/account/passkeys/options', headers: bearer(token) }),
    ]
    t.strictSame(
      allowed.map(({ statusCode }) => statusCode),
      [200, 200, 200],
    )
    t.strictSame(leftOf('write', allowed[1] as LightMyRequestResponse), { r: 2, t: LONG })
    t.match(allowed[2]?.headers, {
      'ratelimit-policy': /^"password";q=1000;w=600, "write";q=5;w=600$/,
      ratelimit: /^"password";r=\d+;t=\d+, "write";r=1;t=\d+$/,
    })
    const malformed = await app.inject({
      method: 'PUT',
      url: '/account',
      headers: bearer(token),
      payload: 'not looked at',
    })
    t.equal(malformed.statusCode, 415, 'a write that is refused later counts too')
    for (const credential of [token, key]) {
      const rejected = await rename(app, bearer(credential))
      t.equal(globalErrorOf(t, rejected, 429), 'Too many requests')
      t.equal(Number(rejected.headers['retry-after']), leftOf('write', rejected).t)
    }
    t.equal((await rename(app, bearer(other.token))).statusCode, 200, 'another user of the address')
    const read = await app.inject({ url: '/account', headers: bearer(token) })
    t.strictSame([read.statusCode, read.headers.ratelimit], [200, undefined], 'reads are not counted')
    const ways = [
      { method: 'DELETE', url: `/account/api-keys/${apiKey.id}` },
      { method: 'DELETE', url: '/account/sessions' },
      { method: 'POST', url: '/account/reauthenticate', payload: { password: PASSWORD } },
      { method: 'POST', url: '/account/sign-out' },
    ] as const
    for (const way of ways)
      t.equal(
        (await app.inject({ ...way, headers: bearer(token) })).statusCode,
        204,
        `${way.url} always works`,
      )
    const { accessToken } = (await signIn(app, email)).json()
    t.equal((await rename(app, bearer(accessToken))).statusCode, 429)
    const payload = { currentPassword: PASSWORD, newPassword: `${PASSWORD} 2` }
    const changed = await app.inject({
      method: 'PUT',
      url: '/account/password',
      headers: bearer(accessToken),
      payload,
    })
    t.equal(changed.statusCode, 200, 'the owner changes the password')
    const removal = {
      headers: bearer(changed.json().accessToken),
      payload: { password: payload.newPassword },
    }
    t.equal((await app.inject({ method: 'DELETE', url: '/account', ...removal })).statusCode, 204)
  })
})

const onPostgres = async (t: Test, DATABASE_URL: string, points: number): Promise<FastifyInstance> =>
  build(t, { env: { ...ON, DATABASE_URL }, rateLimits: limits(LONG, points), extend: withMailRoute })

t.test('instances on one PostgreSQL share counts', async t => {
  const url = await newDatabase(t)
  const [one, other] = [await onPostgres(t, url, 10), await onPostgres(t, url, 10)]
  const responses = await countedTogether(address =>
    Array.from({ length: 40 }, (_, index) => mail(index % 2 === 0 ? one : other, address)),
  )
  t.equal(responses.filter(status => status === 200).length, 10)
})

t.test('while PostgreSQL does not respond, an instance counts by itself, without a long wait', async t => {
  const proxy = await createProxy(t, await newDatabase(t))
  const app = await onPostgres(t, proxy.url, 2)
  t.teardown(() => {
    proxy.set('none')
    proxy.cut()
  })
  for (const fault of ['silent', 'refuse'] as const) {
    proxy.set(fault)
    if (fault === 'refuse') proxy.cut()
    const began = performance.now()
    const responses = await statuses(
      Array.from({ length: 4 }, () => mail(app, `${fault === 'silent' ? '192.0.2.1' : '192.0.2.2'}`)),
    )
    t.strictSame(responses.sort(), [200, 200, 429, 429], fault)
    t.ok(performance.now() - began < 4_000, 'sooner than the database is given up')
  }
})
