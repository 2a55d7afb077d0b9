/** Which requests the client repeats, and when (docs/design.md, "OpenAPI and client"). */
import t from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { createClient } from '../../client/client.ts'
import { build, freshEmail, PASSWORD } from '../support/build.ts'
import { clientsOf, rejection, scripted } from '../support/clients.ts'
import { perAddress } from '../support/limits.ts'

/** A service that accepts one sign-in in a window. @returns how many sign-ins were sent. */
const limited = async (t: Parameters<typeof build>[0], seconds: number) => {
  const sent: string[] = []
  const app = await build(t, {
    env: { RATE_LIMIT: 'on' },
    rateLimits: { ...RATE_LIMITS, perAddress: perAddress({ 'sign-in': 1 }, seconds) },
    extend: app => app.server.on('request', ({ url }) => sent.push(String(url))),
  })
  const { baseUrl, gatehouse } = await clientsOf(app)
  const user = { email: freshEmail(), password: PASSWORD }
  await gatehouse.signUp(user)
  await gatehouse.signIn(user)
  sent.length = 0
  return { baseUrl, user, sent }
}

t.test('a limited request is repeated after Retry-After', async t => {
  const { baseUrl, user, sent } = await limited(t, 1)
  const { accessToken } = await createClient({ baseUrl, retries: 1 }).signIn(user)
  t.ok(accessToken, 'the one repetition came when the window was over')
  t.equal(sent.length, 2)
})

t.test('a Retry-After that is too long is an error at once', async t => {
  const { baseUrl, user, sent } = await limited(t, 60)
  const error = await rejection(createClient({ baseUrl }).signIn(user))
  t.match(error, { status: 429, errors: { global: ['Too many requests'] }, retryAfter: Number })
  const { retryAfter } = error as { retryAfter: number }
  t.ok(retryAfter > 10 && retryAfter <= 60, `${retryAfter}`)
  t.equal(sent.length, 1)
})

t.test('a call is aborted while it waits', async t => {
  const { baseUrl, user, sent } = await limited(t, 60)
  const controller = new AbortController()
  const reason = new Error('the page was left')
  const gatehouse = createClient({
    baseUrl,
    maxRetryDelay: 120_000,
    async fetch(...request) {
      const response = await fetch(...request)
      // The client has the response and begins to wait before this runs.
      if (response.status === 429) setImmediate(() => controller.abort(reason))
      return response
    },
  })
  t.equal(await rejection(gatehouse.signIn(user, { signal: controller.signal })), reason)
  t.equal(sent.length, 1)
})

const failing = (status: number, header: Record<string, string> = {}) =>
  [
    (response: import('node:http').ServerResponse) =>
      response.writeHead(status, header).end('{"errors":{"global":["try again"]}}'),
    (response: import('node:http').ServerResponse) => response.end('{"id":"1"}'),
  ] as const

t.test('a read is repeated after 503, 502 and 504 and a broken connection', async t => {
  for (const status of [502, 503, 504]) {
    const { baseUrl, requests } = await scripted(t, ...failing(status, { 'retry-after': '0' }))
    t.match(await createClient({ baseUrl }).getAccount(), { id: '1' })
    t.equal(requests.length, 2, `${status}`)
  }
  const { baseUrl, requests } = await scripted(
    t,
    response => response.destroy(),
    response => response.end('{"id":"1"}'),
  )
  t.match(await createClient({ baseUrl }).getAccount(), { id: '1' })
  t.equal(requests.length, 2)
})

t.test('a write is repeated only after 429: others may have happened', async t => {
  for (const [status, expected] of [
    [429, 2],
    [503, 1],
    [500, 1],
  ] as const) {
    const { baseUrl, requests } = await scripted(t, ...failing(status, { 'retry-after': '0' }))
    const changed = createClient({ baseUrl }).updateAccount({ firstName: 'Ann' })
    if (expected === 1) t.match(await rejection(changed), { status, retryAfter: 0 })
    else t.match(await changed, { id: '1' })
    t.equal(requests.length, expected, `${status}`)
  }
})

t.test('lasting errors are not repeated; repetitions are bounded and can be switched off', async t => {
  for (const status of [400, 401, 403, 404, 500]) {
    const { baseUrl, requests } = await scripted(t, ...failing(status))
    t.match(await rejection(createClient({ baseUrl }).getAccount()), { status })
    t.equal(requests.length, 1, `${status}`)
  }
  for (const [retries, expected] of [
    [undefined, 3],
    [0, 1],
    [1, 2],
  ] as const) {
    const { baseUrl, requests } = await scripted(t, failing(503)[0])
    t.match(await rejection(createClient({ baseUrl, retries }).getAccount()), { status: 503 })
    t.equal(requests.length, expected)
    const count = requests.length
    await rejection(createClient({ baseUrl }).getAccount({ retries: 0 }))
    t.equal(requests.length, count + 1)
  }
})

t.test('Retry-After may be a date', async t => {
  const { baseUrl } = await scripted(
    t,
    failing(429, { 'retry-after': new Date(Date.now() + 90_000).toUTCString() })[0],
  )
  const { retryAfter } = (await rejection(createClient({ baseUrl }).getAccount())) as { retryAfter: number }
  t.ok(retryAfter > 80 && retryAfter <= 90, `${retryAfter}`)
})
