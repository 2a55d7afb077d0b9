/** The role gate: routes that declare `config.roles` (docs/design.md, "Contract"). */
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { impersonate } from '../support/admin-routes.ts'
import { asAdmin, bearer, build, cookie, logCapture, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { perAddress } from '../support/limits.ts'
import { parseResponse } from '../support/process.ts'
import { routesTree } from '../support/project-copy.ts'
import { liveRoutes } from '../support/routes.ts'
import { sendSlowly } from '../support/slow-request.ts'
import { until } from '../support/until.ts'

const REFUSED = 'This needs a role that you do not have'

const article = (config: string): string => `
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'

const Article = Type.Object({ text: Type.String({ minLength: 1 }) }, { additionalProperties: false })

const articles: FastifyPluginAsyncTypebox = async app => {
  app.get('', { config: ${config} }, async () => ({ text: 'read' }))
  app.post('', { config: ${config}, schema: { body: Article, response: { 201: Article } } }, async (request, reply) => {
    reply.code(201)
    return request.validatedData.body
  })
}

export default articles
`

const EDITORS = article("{ roles: ['editor', 'chief:editor'] }")

const setRoles = async (app: FastifyInstance, id: string, roles: readonly string[]): Promise<void> => {
  const response = await updateUser(app, id, { roles })
  if (response.statusCode !== 200) throw new Error(response.body)
}

const read = (app: FastifyInstance, token: string) => call(app, 'GET', '/articles', undefined, bearer(token))

/** Milliseconds within which another instance follows (docs/design.md, "Storage"), and between two looks at it. */
const SECOND = 1_000
const POLL = 5

const tree = routesTree(t, { 'routes/private/articles/routes.ts': EDITORS })

await onEnginesOfRun(t, async (t, { newDatabase }) => {
  const DATABASE_URL = await newDatabase(t)
  const options = { env: { DATABASE_URL }, hasher: quickHashing }
  const app = await tree.build(t, options)
  const other = await tree.build(t, options)

  t.test('any of the roles suffices; other users get 403, clients without a user 401', async t => {
    const { id, token } = await signUp(app)
    t.equal(globalErrorOf(t, await read(app, token), 403), REFUSED)
    await setRoles(app, id, ['chief', 'editors', 'edito'])
    t.equal(globalErrorOf(t, await read(app, token), 403), REFUSED, 'a part of a role is another role')
    for (const roles of [['editor'], ['chief:editor'], ['a', 'editor', 'z']]) {
      await setRoles(app, id, roles)
      t.equal((await read(app, token)).statusCode, 200, roles.join())
      t.equal((await app.inject({ url: '/articles', headers: cookie(token) })).statusCode, 200)
    }
    await setRoles(app, id, [])
    t.equal((await read(app, token)).statusCode, 403)
    t.equal((await app.inject('/articles')).statusCode, 401)
    t.equal((await read(app, `${token}x`)).statusCode, 401)
    t.equal((await app.inject({ url: '/articles', headers: asAdmin })).statusCode, 401)
  })

  t.test('the gate guards HEAD, and precedes the body and its validation', async t => {
    const { id, token } = await signUp(app)
    const head = () => app.inject({ method: 'HEAD', url: '/articles', headers: bearer(token) })
    const malformed = () =>
      app.inject({
        method: 'POST',
        url: '/articles',
        payload: '{',
        headers: { ...bearer(token), 'content-type': 'application/json' },
      })
    t.equal((await head()).statusCode, 403)
    t.equal(globalErrorOf(t, await malformed(), 403), REFUSED)
    t.equal(
      (await app.inject({ method: 'DELETE', url: '/articles', headers: bearer(token) })).statusCode,
      405,
    )
    await setRoles(app, id, ['editor'])
    t.equal((await head()).statusCode, 200)
    t.equal((await malformed()).statusCode, 400)
  })

  t.test('an impersonated user has the roles of the user', async t => {
    const { id } = await signUp(app)
    const { accessToken } = (await impersonate(app, id)).json()
    t.equal((await read(app, accessToken)).statusCode, 403)
    await setRoles(app, id, ['editor'])
    t.equal((await read(app, accessToken)).statusCode, 200)
  })

  t.test('a role that is taken while the body arrives refuses the request', async t => {
    if (!app.server.listening) await app.listen({ host: '127.0.0.1', port: 0 })
    const { id, token } = await signUp(app)
    const postSlowly = async (meanwhile: () => Promise<unknown>) =>
      parseResponse(
        await sendSlowly(
          app,
          { method: 'POST', url: '/articles', headers: bearer(token), body: { text: 'late' } },
          meanwhile,
        ),
      )
    await setRoles(app, id, ['editor'])
    await read(app, token)
    t.equal((await postSlowly(() => setRoles(app, id, ['editor', 'other']))).status, 201)
    const refused = await postSlowly(() => setRoles(app, id, ['other']))
    t.equal(refused.status, 403)
    t.same(JSON.parse(refused.body), { errors: { global: [REFUSED] } })
  })

  t.test('a change applies to the next request here, and within a second on another instance', async t => {
    const { id, token } = await signUp(app)
    for (const roles of [['editor'], [], ['chief:editor'], ['reader']]) {
      const expected = roles.some(role => role.endsWith('editor')) ? 200 : 403
      await setRoles(app, id, roles)
      t.equal((await read(app, token)).statusCode, expected, 'here')
      const there = await until(
        async () => (await read(other, token)).statusCode,
        status => status === expected,
        SECOND,
      )
      t.equal(there, expected, 'there, for requests that begin a second later')
    }
  })

  t.test(
    '320 changes during requests on two instances: no request sees roles from before a change',
    async t => {
      const users = await Promise.all(Array.from({ length: 40 }, () => signUp(app)))
      const stale: string[] = []
      let checked = 0
      const change = async ({ id, token }: (typeof users)[number]): Promise<void> => {
        for (let round = 0; round < 8; round += 1) {
          const [here, there] = round % 4 < 2 ? [app, other] : [other, app]
          const isEditor = round % 2 === 0
          let isAcknowledged = false
          // Requests before and during the change fill the caches of both instances with either state.
          const during = async (instance: FastifyInstance): Promise<void> => {
            while (!isAcknowledged) {
              await read(instance, token)
              await setImmediate()
            }
          }
          const busy = [during(here), during(there)]
          await setRoles(here, id, isEditor ? ['editor'] : [])
          const acknowledged = performance.now()
          const expected = isEditor ? 200 : 403
          const { statusCode } = await read(here, token)
          isAcknowledged = true
          checked += 1
          if (statusCode !== expected) stale.push(`${round} here: ${statusCode}`)
          await Promise.all(busy)
          for (;;) {
            const sent = performance.now()
            const response = await read(there, token)
            if (response.statusCode === expected) break
            if (sent - acknowledged > SECOND) {
              stale.push(`${round} there: ${response.statusCode}`)
              break
            }
            await sleep(POLL)
          }
        }
      }
      await Promise.all(users.map(change))
      t.equal(checked, 320)
      t.same(stale, [])
    },
  )
})

t.test('a user without the role does not count towards the rate limit of the route', async t => {
  const limited = routesTree(t, {
    'routes/private/articles/routes.ts': article("{ roles: ['editor'], rateLimit: 'mail' }"),
  })
  const app = await limited.build(t, {
    env: { RATE_LIMIT: 'on' },
    hasher: quickHashing,
    rateLimits: {
      ...(await import('#core/rate-limits/limits')).RATE_LIMITS,
      // The sign-up is one of them.
      perAddress: perAddress({ mail: 2 }),
    },
  })
  const { id, token } = await signUp(app)
  for (let index = 0; index < 3; index += 1) t.equal((await read(app, token)).statusCode, 403)
  await setRoles(app, id, ['editor'])
  t.equal((await read(app, token)).statusCode, 200)
  t.equal((await read(app, token)).statusCode, 429)
})

t.test('OpenAPI documents the roles and their 403', async t => {
  const app = await tree.build(t)
  const { paths } = (await app.inject('/openapi.json')).json()
  const { get, post } = paths['/articles']
  for (const operation of [get, post]) {
    t.equal(
      operation.description,
      'Needs one of the roles `editor`, `chief:editor`. API keys are not accepted.',
    )
    t.ok(operation.responses['403'])
  }
  t.notOk(paths['/health'].get.responses['403'], 'not on public routes')
  t.same(
    liveRoutes(app)
      .filter(({ roles, ofFeature, url }) => roles !== undefined && (!ofFeature || url === '/articles'))
      .map(({ method, url }) => `${method} ${url}`),
    ['GET /articles', 'HEAD /articles', 'POST /articles'],
  )
})

t.test('a refusal is logged as one line without a stack', async t => {
  const log = logCapture()
  const app = await tree.build(t, { logStream: log.stream, hasher: quickHashing })
  const { token } = await signUp(app)
  await read(app, token)
  const lines = log.records().filter(({ status }) => status === 403)
  t.ok(lines.length <= 1, log.text())
})

t.test('the service does not start with roles that cannot be checked', async t => {
  const wrong: [string, string, RegExp][] = [
    [
      'routes/public/articles/routes.ts',
      "{ roles: ['editor'] }",
      /^GET \/articles declares roles, but only private routes/,
    ],
    [
      'routes/admin/articles/routes.ts',
      "{ roles: ['editor'] }",
      /^GET \/admin\/articles declares roles, but only private/,
    ],
    [
      'routes/private/articles/routes.ts',
      '{ roles: [] as never }',
      /^GET \/articles declares no role: it needs at least one/,
    ],
    ['routes/private/articles/routes.ts', "{ roles: 'editor' as never }", /^GET \/articles declares no role/],
    [
      'routes/private/articles/routes.ts',
      "{ roles: ['ok', 'Editor'] }",
      /^GET \/articles declares the role "Editor", which must be a role: a to z first/,
    ],
    ['routes/private/articles/routes.ts', `{ roles: ['${'x'.repeat(65)}'] }`, /which must be a role/],
    [
      'routes/private/articles/routes.ts',
      '{ roles: [7 as never] }',
      /declares the role 7, which must be a role/,
    ],
  ]
  for (const [file, config, message] of wrong)
    await t.rejects(routesTree(t, { [file]: article(config) }).build(t), { message }, `${file} ${config}`)
})

t.test('the service does not start with roles that a hook declares, which come too late', async t => {
  const hook = `import type { FastifyInstance } from 'fastify'

export default async function roles(app: FastifyInstance) {
  app.addHook('onRoute', route => {
    route.config = { ...route.config, roles: ['editor'] }
  })
}
`
  const tree = routesTree(t, {
    'routes/private/articles/autohooks.ts': hook,
    'routes/private/articles/routes.ts': article('{}'),
  })
  await t.rejects(tree.build(t), {
    message: /^GET \/articles gets its roles from a hook: declare config\.roles/,
  })
})

t.test('routes without roles have no further hook', async t => {
  const app = await build(t)
  const account = app.routeTable.find(({ url, methods }) => url === '/account' && methods.includes('GET'))
  t.equal(account?.options.onRequest, undefined)
  t.equal(account?.options.preHandler, undefined)
})
