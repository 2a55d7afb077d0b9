/** State that survives a restart: tokens of configured secrets (docs/design.md, "Tokens and sessions"), last requests (§5.1.2). */
import t from 'tap'
import {
  accountStatus,
  asAdmin,
  bearer,
  manualClock,
  PASSWORD,
  type SignedUp,
  signIn,
  signUp,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const SECOND = 1_000

  t.test('tokens of the previous secret are valid while it is configured', async t => {
    const DATABASE_URL = await newDatabase(t)
    const [one, two] = ['1'.repeat(40), '2'.repeat(40)]
    const kid = (token: string) =>
      JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid
    const before = await build(t, { env: { DATABASE_URL, JWT_SECRET: one } })
    const user = await signUp(before)
    await before.close()
    const during = await build(t, { env: { DATABASE_URL, JWT_SECRET: two, JWT_SECRET_PREVIOUS: one } })
    t.equal(await accountStatus(during, user.token), 200)
    const next = (await signIn(during, user.email)).json().accessToken
    t.equal(await accountStatus(during, next), 200)
    t.not(kid(next), kid(user.token), 'new tokens are signed by the new key')
    await during.close()
    const after = await build(t, { env: { DATABASE_URL, JWT_SECRET: two } })
    t.equal(await accountStatus(after, user.token), 401)
    t.equal(await accountStatus(after, next), 200)
  })

  t.test('a last request is noted on every route and survives a stop (§5.1.2)', async t => {
    const clock = manualClock()
    const DATABASE_URL = await newDatabase(t)
    const app = await build(t, { clock: clock.now, env: { DATABASE_URL } })
    const target = await signUp(app)
    const credentials = { email: target.email, password: PASSWORD }
    const id = target.id
    const requests = [
      { url: '/health', status: 200 },
      { url: '/ready', status: 200 },
      { url: '/account', status: 200 },
      { url: '/account', method: 'HEAD', status: 200 },
      { url: '/users', status: 200 },
      { url: '/account', method: 'PUT', payload: { firstName: 'Ada' }, status: 200 },
      { url: '/account', method: 'PUT', payload: { firstName: 5 }, status: 400 },
      { url: '/account/sign-in', method: 'POST', payload: credentials, status: 200 },
      { url: '/account/sign-in', method: 'POST', payload: {}, status: 400 },
      { url: '/account/sign-up', method: 'POST', payload: credentials, status: 409 },
      { url: '/admin/users', headers: asAdmin, status: 200 },
      { url: '/admin/users', status: 401 },
      {
        url: `/admin/users/${id}`,
        method: 'PUT',
        headers: asAdmin,
        payload: { firstName: 'Bo' },
        status: 200,
      },
      { url: `/admin/users/${id}`, method: 'PUT', payload: { firstName: 'Bo' }, status: 401 },
    ] as const
    const made: { user: SignedUp; at: string; title: string }[] = []
    for (const { status, ...request } of requests) {
      const user = await signUp(app)
      clock.advance(61 * SECOND)
      const headers = { ...('headers' in request ? request.headers : {}), ...bearer(user.token) }
      const title = `${'method' in request ? request.method : 'GET'} ${request.url} ${status}`
      t.equal((await app.inject({ ...request, headers })).statusCode, status, title)
      made.push({ user, at: new Date(clock.now()).toISOString(), title })
    }
    await app.close()
    const next = await build(t, { clock: clock.now, env: { DATABASE_URL } })
    const { results } = (await next.inject({ url: '/admin/users?limit=100', headers: asAdmin })).json()
    const timestamps = new Map<string, string>(
      results.map((user: { id: string; lastRequestAt: string }) => [user.id, user.lastRequestAt]),
    )
    for (const { user, at, title } of made) t.equal(timestamps.get(user.id), at, title)
    t.equal(timestamps.get(target.id), null, 'null until the first identified request')
  })
})
