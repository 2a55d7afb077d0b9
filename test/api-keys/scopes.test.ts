/** Scopes of API keys, for each private route of the live table (RFC 6750 §3.1; docs/design.md, "Machine callers"). */
import type { InjectOptions } from 'fastify'
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { createKey, SCOPES } from '../support/api-keys.ts'
import { asAdmin, bearer, build, signUp, updateUser } from '../support/build.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { routesTree } from '../support/project-copy.ts'
import { liveRoutes } from '../support/routes.ts'

const SESSION_NEEDED = 'This needs a session: sign in, API keys are not accepted here'
const SCOPE_NEEDED = 'This needs a scope that the key does not have'

const privateRoutes = (app: Awaited<ReturnType<typeof build>>) =>
  liveRoutes(app).filter(({ gate }) => gate === 'user')

const app = await build(t, { hasher: quickHashing })
const routes = privateRoutes(app)
const user = await signUp(app)
const keys = new Map<string, string>()
for (const scope of SCOPES) keys.set(scope, (await createKey(app, user.token, { scopes: [scope] })).token)
const full = (await createKey(app, user.token)).token

/** What would end the session, or the account, of the tests that follow. */
const ENDING = ['POST /account/sign-out', 'DELETE /account/sessions', 'DELETE /account']

/** Without a body and with an id that fits no schema, so that an accepted request changes nothing. */
const send = (method: string, url: string, headers: Record<string, string>) =>
  app.inject({
    method: method as InjectOptions['method'] & string,
    url: url.replace(':id', 'x'),
    headers,
  })

t.test('routes with a scope are those of the table of routes', async t => {
  const withScope = routes.filter(
    ({ scope, ofFeature }) => scope !== undefined && SCOPES.includes(scope) && !ofFeature,
  )
  const read = [
    '/account account:read',
    '/account/events account:read',
    '/account/invitations organizations:read',
    '/organizations organizations:read',
    '/organizations/:organizationId organizations:read',
    '/organizations/:organizationId/invitations organizations:read',
    '/organizations/:organizationId/members organizations:read',
    '/users users:read',
  ]
  t.same(withScope.map(({ method, url, scope }) => `${method} ${url} ${scope}`).sort(), [
    'DELETE /organizations/:organizationId/invitations/:invitationId organizations:write',
    'DELETE /organizations/:organizationId/members/:userId organizations:write',
    ...read.map(route => `GET ${route}`),
    ...read.map(route => `HEAD ${route}`),
    'POST /account/invitations/accept organizations:write',
    'POST /organizations organizations:write',
    'POST /organizations/:organizationId/invitations organizations:write',
    'PUT /account account:write',
    'PUT /organizations/:organizationId organizations:write',
    'PUT /organizations/:organizationId/members/:userId organizations:write',
  ])
})

for (const { method, url, scope } of routes) {
  const title = scope === undefined ? 'refuses every key' : `needs the scope ${scope}`
  t.test(`${method} ${url} ${title}`, async t => {
    for (const [granted, token] of keys) {
      const response = await send(method, url, bearer(token))
      if (scope === granted) {
        t.notOk([401, 403].includes(response.statusCode), `${granted}: ${response.statusCode}`)
        continue
      }
      t.equal(response.statusCode, 403, granted)
      const expected = `Bearer error="insufficient_scope"${scope === undefined ? '' : `, scope="${scope}"`}`
      t.equal(response.headers['www-authenticate'], expected, granted)
      if (method !== 'HEAD')
        t.equal(globalErrorOf(t, response, 403), scope === undefined ? SESSION_NEEDED : SCOPE_NEEDED)
    }
    const all = await send(method, url, bearer(full))
    if (scope === undefined) t.equal(all.statusCode, 403, 'all scopes')
    else if (SCOPES.includes(scope)) t.not(all.statusCode, 403, 'all scopes')
    if (method !== 'HEAD' && scope === undefined) t.equal(globalErrorOf(t, all, 403), SESSION_NEEDED)
    if (!ENDING.includes(`${method} ${url}`)) {
      const session = await send(method, url, bearer(user.token))
      t.notOk([401, 403].includes(session.statusCode), `a session: ${session.statusCode}`)
    }
  })
}

t.test('a refused key changes nothing and learns nothing about the body', async t => {
  const { id, email, token } = await signUp(app, { firstName: 'Early' })
  const reading = (await createKey(app, token, { scopes: ['account:read'] })).token
  const refused = await app.inject({
    method: 'PUT',
    url: '/account',
    headers: { ...bearer(reading), 'content-type': 'application/json' },
    payload: '{',
  })
  globalErrorOf(t, refused, 403)
  t.equal((await call(app, 'PUT', '/account', { firstName: 'Late' }, bearer(reading))).statusCode, 403)
  t.equal((await call(app, 'POST', '/account/sign-out', undefined, bearer(reading))).statusCode, 403)
  const account = await call(app, 'GET', '/account', undefined, bearer(reading))
  t.match(account.json(), { id, email, firstName: 'Early' })
  const writing = (await createKey(app, token, { scopes: ['account:write'] })).token
  t.match((await call(app, 'PUT', '/account', { firstName: 'Late' }, bearer(writing))).json(), {
    firstName: 'Late',
  })
})

const ARTICLES = `
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

const articles: FastifyPluginAsyncTypebox = async app => {
  app.get('', { config: { roles: ['editor'], scope: 'account:read' } }, async () => ({ text: 'read' }))
}

export default articles
`

t.test('a route with roles and a scope needs both', async t => {
  const app = await routesTree(t, { 'routes/private/articles/routes.ts': ARTICLES }).build(t, {
    hasher: quickHashing,
  })
  const { id, token } = await signUp(app)
  const right = (await createKey(app, token, { scopes: ['account:read'] })).token
  const wrong = (await createKey(app, token, { scopes: ['users:read'] })).token
  const read = (token: string) => call(app, 'GET', '/articles', undefined, bearer(token))
  for (const [title, key] of Object.entries({ right, wrong, token }))
    t.equal((await read(key)).statusCode, 403, `${title}, without the role`)
  t.equal((await updateUser(app, id, { roles: ['editor'] })).statusCode, 200)
  t.equal((await read(token)).statusCode, 200, 'a session needs no scope')
  t.equal((await read(right)).statusCode, 200)
  const refused = await read(wrong)
  t.equal(globalErrorOf(t, refused, 403), SCOPE_NEEDED)
  t.equal(refused.headers['www-authenticate'], 'Bearer error="insufficient_scope", scope="account:read"')
  t.equal((await app.inject({ url: '/articles', headers: asAdmin })).statusCode, 401)
})

const EARLY_HOOKS = `
import type { FastifyInstance } from 'fastify'

export default async function earlyHooks(app: FastifyInstance): Promise<void> {
  app.addHook('onRequest', async (_request, reply) => reply.send('early'))
  app.addHook('onRoute', route => {
    route.onRequest = async () => {}
  })
}
`

t.test('hooks of a subfolder run after the check of the scope and cannot remove it', async t => {
  const route = (config: string) =>
    `import type { FastifyInstance } from 'fastify'
    export default async (app: FastifyInstance) => { app.get('', { config: ${config} }, async () => 'open') }`
  const tree = routesTree(t, {
    'routes/private/articles/autohooks.ts': EARLY_HOOKS,
    'routes/private/articles/routes.ts': route("{ scope: 'account:read' }"),
    'routes/private/drafts/autohooks.ts': EARLY_HOOKS,
    'routes/private/drafts/routes.ts': route('{}'),
    'routes/admin/reports/autohooks.ts': EARLY_HOOKS,
    'routes/admin/reports/routes.ts': route("{ scope: 'events:read' }"),
  })
  const app = await tree.build(t, { hasher: quickHashing })
  const { token } = await signUp(app)
  const status = async (url: string, headers: Record<string, string>) =>
    (await app.inject({ url, headers })).statusCode
  const wrong = bearer((await createKey(app, token, { scopes: ['users:read'] })).token)
  const right = bearer((await createKey(app, token, { scopes: ['account:read'] })).token)
  t.equal(await status('/articles', right), 200)
  t.equal(await status('/articles', wrong), 403)
  for (const headers of [right, wrong]) t.equal(await status('/drafts', headers), 403)
  t.equal(await status('/drafts', bearer(token)), 200)
  const request = { method: 'POST', url: '/admin/keys', headers: asAdmin } as const
  const payload = { name: 'a key', scopes: ['users:read'] }
  const { adminKey } = (await app.inject({ ...request, payload })).json()
  t.equal(await status('/admin/reports', { 'x-admin-key': adminKey }), 403)
  t.equal(await status('/admin/reports', asAdmin), 200)
})

t.test('the service does not start with a scope that no feature declares', async t => {
  for (const scope of ['articles:read', 'Account:read', '']) {
    const text = ARTICLES.replace("scope: 'account:read'", `scope: '${scope}'`)
    await t.rejects(
      routesTree(t, { 'routes/private/articles/routes.ts': text }).build(t),
      { message: /^GET \/articles/ },
      scope,
    )
  }
})

t.test('OpenAPI states the scope of a route', async t => {
  const { paths } = (await app.inject('/openapi.json')).json()
  t.match(paths['/account'].get.description, 'account:read')
  t.ok(paths['/account'].get.responses['403'])
})
