/** `GET /admin/status`: what a load tool checks before it starts (docs/design.md, "Load tests"). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { createKey, type Headers } from '../support/admin-keys.ts'
import { ADMIN_KEY, accountStatus, asAdmin, bearer, JWT_SECRET, signUp } from '../support/build.ts'
import { importAll } from '../support/bulk-users.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { liveRoutes } from '../support/routes.ts'

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', 'package.json'), 'utf8'))

const getStatus = (app: FastifyInstance, headers: Headers = asAdmin) =>
  app.inject({ url: '/admin/status', headers })

await onEnginesOfRun(t, async (t, { name, build }) => {
  t.test('the status of a service', async t => {
    const app = await build(t, { env: { MAIL_URL: 'off', RATE_LIMIT: 'off', LOG_REQUESTS: 'on' } })
    const before = await getStatus(app)
    t.equal(before.headers['cache-control'], 'no-store')
    const { startedAt, cache, ...rest } = before.json()
    t.strictSame(rest, {
      service: 'gatehouse',
      version,
      engine: name,
      workers: 1,
      environment: 'test',
      passwordHash: { algorithm: 'argon2id', memoryKiB: 19_456, iterations: 2, parallelism: 1 },
      rateLimits: false,
      requestLog: true,
      mail: 'off',
      users: 0,
      replica: null,
    })
    const age = Date.now() - Date.parse(startedAt)
    t.ok(age >= 0 && age <= process.uptime() * 1_000 + 1_000, 'the start of the process')
    t.equal(cache.entries, 0)
    t.ok(cache.capacity >= 1_000)

    const { token } = await signUp(app)
    // On PostgreSQL nothing is cached before the invalidation feed is connected.
    do t.equal(await accountStatus(app, token), 200)
    while ((await getStatus(app)).json().cache.entries === 0)
    const after = await getStatus(app)
    t.strictSame(after.json().cache, { entries: 1, capacity: cache.capacity })
    t.equal(after.json().users, 1)
    for (const secret of [ADMIN_KEY, JWT_SECRET, token]) t.notOk(after.body.includes(secret))
  })

  t.test('other settings, and a count of many users that parallel requests share', async t => {
    const app = await build(t, { env: { RATE_LIMIT: 'on', MAIL_URL: 'smtp://localhost:1' } })
    await importAll(
      app,
      Array.from({ length: 2_500 }, (_, index) => ({ email: `user${index}@example.com` })),
    )
    const responses = await Promise.all(Array.from({ length: 5 }, () => getStatus(app)))
    for (const response of responses)
      t.match(response.json(), { users: 2_500, rateLimits: true, requestLog: false, mail: 'smtp' })
    const status = async (query: string, headers = {}) =>
      (await app.inject({ url: `/admin/status${query}`, headers: { ...asAdmin, ...headers } })).json()
    t.match(await status('?count=approximate'), { users: null, approximateUsers: 2_500 })
    t.match(await status('?count=false'), { users: null, approximateUsers: undefined })
    t.equal((await status('?count=true')).users, 2_500)
    t.match(await status('?count=yes'), { errors: { count: ['must be one of true, false, approximate'] } })
    const { headers } = await createKey(app, ['status:read', 'users:read'])
    t.equal((await getStatus(app, headers)).json().users, 2_500, 'with a key that has the scopes')
  })

  t.test('R9: no key without users:read or users:export reaches the number of users', async t => {
    const app = await build(t)
    const total = 1_009
    await importAll(
      app,
      Array.from({ length: total }, (_, index) => ({ email: `user${index}@example.com` })),
    )
    const lists = liveRoutes(app).filter(({ method, page }) => method === 'GET' && !page)
    const scopes = new Set(lists.map(({ scope = 'users:read' }) => scope)).difference(
      new Set(['users:read', 'users:export']),
    )
    const keys = [{ headers: {} }, { headers: bearer((await signUp(app)).token) }]
    for (const scope of scopes)
      if (scope in app.services.adminScopes) keys.push(await createKey(app, [scope]))
    const answers = []
    for (const { headers } of keys)
      for (const { url } of lists)
        for (const query of ['', '?count=true&limit=1', '?count=approximate', '?limit=1']) {
          const response = await app.inject({ url: url.replace(/:\w+|\*/g, 'x') + query, headers })
          if (/(?:[:[]|\s)10(?:09|10)(?:[,}\]\s]|$)/.test(response.body))
            answers.push(`${url}${query}: ${response.body.slice(0, 99)}`)
        }
    t.same(answers, [])
    const { headers } = await createKey(app, ['status:read'])
    t.match((await getStatus(app, headers)).json(), { service: 'gatehouse', users: null })
    const url = '/admin/status?count=approximate'
    t.notMatch((await app.inject({ url, headers })).json(), { approximateUsers: Number })
  })
})
