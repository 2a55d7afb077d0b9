import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import gatehouse, { type Guard } from '../../src/gatehouse.ts'
import { asAdmin, bearer, cookie, temporaryFolder } from '../support/build.ts'
import { buildHost, hostConfig, tokenAt } from '../support/host.ts'

/** An API key of the user of a session, see {@link tokenAt}. */
const keyAt = async (
  host: FastifyInstance,
  token: string,
  scopes: readonly string[],
  prefix = '/auth',
): Promise<string> => {
  const created = await host.inject({
    method: 'POST',
    url: `${prefix}/account/api-keys`,
    headers: bearer(token),
    payload: { name: 'a script', scopes },
  })
  if (created.statusCode !== 201) throw new Error(created.body)
  return created.json().token
}

const addRoutes = (host: FastifyInstance): void => {
  const { requireUser, requireAdminKey } = host.gatehouse
  host.get('/hello', { preHandler: requireUser }, request => `Hello ${request.user.firstName}`)
  host.post('/early', { onRequest: requireUser }, request => ({
    id: request.principal?.cachedUser.user.id,
    body: request.body,
  }))
  host.get('/both', { onRequest: requireUser, preHandler: requireUser }, request => request.user.id)
  host.get('/operator', { onRequest: requireAdminKey }, () => 'operator')
  host.get('/open', request => ({ principal: request.principal }))
}

t.test('guards authenticate requests to routes of the host', async t => {
  const host = await buildHost(t)
  addRoutes(host)
  const token = await tokenAt(host)
  for (const headers of [bearer(token), cookie(token), { cookie: `a=1; ACCESS_TOKEN=${token}` }])
    t.equal((await host.inject({ url: '/hello', headers })).body, 'Hello Ada')
  t.match(
    (await host.inject({ method: 'POST', url: '/early', headers: bearer(token), payload: { a: 1 } })).json(),
    { id: String, body: { a: 1 } },
  )
  t.equal((await host.inject({ url: '/both', headers: bearer(token) })).statusCode, 200)
  t.same((await host.inject({ url: '/open', headers: bearer(token) })).json(), { principal: null })
  t.equal((await host.inject({ url: '/operator', headers: asAdmin })).body, 'operator')
})

t.test('requireRoles admits users with any of the roles, from the next request on', async t => {
  const host = await buildHost(t)
  const { requireRoles } = host.gatehouse
  host.get('/desk', { onRequest: requireRoles('editor', 'chief') }, request => request.user.roles)
  const token = await tokenAt(host)
  const desk = () => host.inject({ url: '/desk', headers: bearer(token) })
  const { id } = (await host.inject({ url: '/auth/account', headers: bearer(token) })).json()
  const setRoles = (roles: string[]) =>
    host.inject({ method: 'PUT', url: `/auth/admin/users/${id}`, headers: asAdmin, payload: { roles } })
  t.equal((await host.inject('/desk')).statusCode, 401)
  t.equal((await desk()).statusCode, 403)
  t.equal((await setRoles(['chief'])).statusCode, 200)
  t.same((await desk()).json(), ['chief'])
  await setRoles(['reader'])
  t.equal((await desk()).statusCode, 403)
  t.throws(() => requireRoles(), { message: 'requireRoles declares no role: it needs at least one' })
  t.throws(() => requireRoles('No'), { message: /^requireRoles declares the role "No"/ })
})

t.test('guards accept API keys only with requireScope, and with its scope', async t => {
  const host = await buildHost(t)
  const { requireUser, requireScope, requireRoles } = host.gatehouse
  const hooks: Record<string, Guard | Guard[]> = {
    '/user': requireUser,
    '/roles': requireRoles('editor'),
    '/scope': requireScope('users:read'),
    '/scope-then-user': [requireScope('users:read'), requireUser],
    '/scope-then-roles': [requireScope('users:read'), requireRoles('editor')],
    '/user-then-scope': [requireUser, requireScope('users:read')],
    '/two-scopes': [requireScope('users:read'), requireScope('account:read')],
  }
  for (const [url, onRequest] of Object.entries(hooks)) host.get(url, { onRequest }, () => 'open')
  host.get('/late', { onRequest: requireScope('users:read'), preHandler: requireUser }, () => 'open')
  const token = await tokenAt(host)
  const { id } = (await host.inject({ url: '/auth/account', headers: bearer(token) })).json()
  const payload = { roles: ['editor'] }
  await host.inject({ method: 'PUT', url: `/auth/admin/users/${id}`, headers: asAdmin, payload })
  const [right, other] = [
    await keyAt(host, token, ['users:read']),
    await keyAt(host, token, ['account:read', 'account:write']),
  ]
  const accepts = { '/scope': true, '/scope-then-user': true, '/scope-then-roles': true, '/late': true }
  for (const url of [...Object.keys(hooks), '/late']) {
    t.equal((await host.inject({ url, headers: bearer(token) })).statusCode, 200, `${url}: a session`)
    const response = await host.inject({ url, headers: bearer(right) })
    t.equal(response.statusCode, url in accepts ? 200 : 403, `${url}: the right key`)
    const refused = await host.inject({ url, headers: bearer(other) })
    t.equal(refused.statusCode, 403, `${url}: a key with other scopes`)
    t.match(refused.headers['www-authenticate'], /^Bearer error="insufficient_scope"/)
    t.equal((await host.inject(url)).statusCode, 401, `${url}: no token`)
  }
  const { headers } = await host.inject({ url: '/scope', headers: bearer(other) })
  t.equal(headers['www-authenticate'], 'Bearer error="insufficient_scope", scope="users:read"')
  t.throws(() => requireScope('shelves:read'), {
    message:
      /^requireScope declares the scope "shelves:read", which is none of account:read, account:write, users:read/,
  })
})

t.test('of two services in one host each accepts its own API keys', async t => {
  const configs = { customers: hostConfig(t), staff: hostConfig(t) }
  const host = Fastify()
  t.teardown(() => host.close())
  for (const name of ['customers', 'staff'] as const)
    await host.register(async scope => {
      await scope.register(gatehouse, { prefix: `/${name}`, config: configs[name] })
      scope.get(`/${name}-desk`, { onRequest: scope.gatehouse.requireScope('account:read') }, () => name)
    })
  await host.ready()
  for (const [name, other] of [
    ['customers', 'staff'],
    ['staff', 'customers'],
  ] as const) {
    const key = await keyAt(host, await tokenAt(host, `/${name}`), ['account:read'], `/${name}`)
    const status = async (url: string) => (await host.inject({ url, headers: bearer(key) })).statusCode
    t.equal(await status(`/${name}-desk`), 200)
    t.equal(await status(`/${name}/account`), 200)
    t.equal(await status(`/${other}-desk`), 401)
    t.equal(await status(`/${other}/account`), 401)
  }
})

t.test('requireAdminScope admits keys with the scope, requireAdminKey only ADMIN_KEY', async t => {
  const host = await buildHost(t)
  const { requireAdminScope, requireAdminKey } = host.gatehouse
  host.get('/scoped', { onRequest: requireAdminScope('events:read') }, request => request.adminKey)
  host.get('/operator', { onRequest: requireAdminKey }, request => request.adminKey)
  host.get(
    '/both',
    { onRequest: requireAdminScope('events:read'), preHandler: requireAdminKey },
    () => 'both',
  )
  const ignored: Guard = (request, reply, done) => requireAdminKey(request, reply, () => done())
  host.get('/ignored', { onRequest: ignored }, request => ({ adminKey: request.adminKey }))
  const create = async (scopes: string[]) => {
    const request = { method: 'POST', url: '/auth/admin/keys', headers: asAdmin } as const
    const { adminKey, key } = (await host.inject({ ...request, payload: { name: 'a key', scopes } })).json()
    return { id: key.id as string, headers: { 'x-admin-key': adminKey as string } }
  }
  const { services } = host.gatehouse
  const reader = await create(['events:read'])
  const others = await create(Object.keys(services.adminScopes).filter(scope => scope !== 'events:read'))
  const all = await create(Object.keys(services.adminScopes))
  const scoped = (headers: Record<string, string>) => host.inject({ url: '/scoped', headers })
  t.same((await scoped(reader.headers)).json(), { id: reader.id, scopes: ['events:read'], expiresAt: null })
  t.match((await scoped(asAdmin)).json(), { id: /^[0-9a-f]{8}$/, scopes: null })
  const refused = await scoped(others.headers)
  t.equal(refused.statusCode, 403)
  const challenge = 'x-admin-key error="insufficient_scope", scope="events:read"'
  t.equal(refused.headers['www-authenticate'], challenge)
  t.equal((await scoped({})).statusCode, 401)
  for (const url of ['/operator', '/both']) {
    t.equal((await host.inject({ url, headers: asAdmin })).statusCode, 200)
    for (const { headers } of [reader, all])
      t.equal((await host.inject({ url, headers })).statusCode, 403, url)
    t.equal((await host.inject(url)).statusCode, 401)
  }
  t.same((await host.inject({ url: '/ignored', headers: all.headers })).json(), { adminKey: null })
  t.throws(() => requireAdminScope('no:scope'), {
    message: /^requireAdminScope declares the scope "no:scope"/,
  })
})

t.test('a guard never lets a request through where its service is not registered', async t => {
  const config = hostConfig(t)
  const host = Fastify()
  t.teardown(() => host.close())
  // Loaded before the registration, and guarded when its routes are called.
  host.register(async scope => {
    scope.get('/early', { preHandler: (...args) => host.gatehouse.requireUser(...args) }, () => 'secret')
  })
  let requireUser: Guard | undefined
  await host.register(async scope => {
    await scope.register(gatehouse, { prefix: '/auth', config })
    requireUser = scope.gatehouse.requireUser
  })
  host.get('/root', { onRequest: requireUser as Guard }, () => 'secret')
  await host.ready()
  for (const url of ['/root', '/early'])
    for (const headers of [{}, bearer('x'), bearer(await tokenAt(host))])
      t.equal((await host.inject({ url, headers })).statusCode, 500, url)
})

t.test('what one guard refuses, the next does not accept', async t => {
  const host = await buildHost(t)
  const { requireUser } = host.gatehouse
  const optional: Guard = (request, reply, done) => requireUser(request, reply, () => done())
  host.post('/change', { onRequest: optional, preHandler: requireUser }, () => 'changed')
  host.get('/socket', { preHandler: requireUser }, () => 'open')
  const token = await tokenAt(host)
  const foreign = { ...cookie(token), origin: 'https://other.example' }
  const change = (headers: Record<string, string>) => host.inject({ method: 'POST', url: '/change', headers })
  t.equal((await change(foreign)).statusCode, 403)
  t.equal((await change(bearer(token))).statusCode, 200)
  const socket = { upgrade: 'websocket', connection: 'upgrade' }
  t.equal((await host.inject({ url: '/socket', headers: { ...foreign, ...socket } })).statusCode, 403)
  t.equal((await host.inject({ url: '/socket', headers: foreign })).statusCode, 200)
})

t.test('a guard accepts only users of its own service', async t => {
  const configs = { customers: hostConfig(t), staff: hostConfig(t) }
  const host = Fastify()
  t.teardown(() => host.close())
  let requireStaff: Guard | undefined
  await host.register(async scope => {
    await scope.register(gatehouse, { prefix: '/staff', config: configs.staff })
    requireStaff = scope.gatehouse.requireUser
  })
  await host.register(async scope => {
    await scope.register(gatehouse, { prefix: '/customers', config: configs.customers })
    const { requireUser } = scope.gatehouse
    scope.get('/desk', { onRequest: requireUser }, () => 'desk')
    scope.get('/both', { onRequest: requireUser, preHandler: requireStaff as Guard }, () => 'both')
  })
  const [customer, staff] = [await tokenAt(host, '/customers'), await tokenAt(host, '/staff')]
  t.equal((await host.inject({ url: '/desk', headers: bearer(customer) })).statusCode, 200)
  for (const token of [customer, staff])
    t.equal((await host.inject({ url: '/both', headers: bearer(token) })).statusCode, 401)
})

t.test('guards fail through the error handler of the host', async t => {
  const host = await buildHost(t)
  addRoutes(host)
  const missing = await host.inject('/hello')
  t.equal(missing.statusCode, 401)
  t.equal(missing.headers['www-authenticate'], 'Bearer')
  t.equal(missing.json().message, 'Sign in to use this route', 'Fastify’s own handler')
  const bad = await host.inject({ url: '/hello', headers: bearer('x') })
  t.equal(bad.headers['www-authenticate'], 'Bearer error="invalid_token"')
  const noKey = await host.inject({ url: '/operator', headers: { 'x-admin-key': 'wrong' } })
  t.equal(noKey.statusCode, 401)
  t.equal(noKey.headers['www-authenticate'], 'x-admin-key')

  const custom = await buildHost(t, {
    before: host =>
      host.setErrorHandler((error: Error & { statusCode: number; errors: object }, _request, reply) =>
        reply.code(error.statusCode).send({ failed: error.errors }),
      ),
  })
  addRoutes(custom)
  const token = await tokenAt(custom)
  t.same((await custom.inject('/hello')).json(), { failed: { global: ['Sign in to use this route'] } })
  const unsafe = { method: 'POST', url: '/early', payload: {} } as const
  const foreign = { ...cookie(token), origin: 'https://other.example' }
  const rejected = await custom.inject({ ...unsafe, headers: foreign })
  t.equal(rejected.statusCode, 403, 'a cookie from another site')
  t.equal((await custom.inject({ ...unsafe, headers: cookie(token) })).statusCode, 200)
})

t.test('a guarded request counts as a request, and revocation applies at once', async t => {
  const host = await buildHost(t)
  addRoutes(host)
  const token = await tokenAt(host)
  const account = async () => (await host.inject({ url: '/auth/account', headers: bearer(token) })).json()
  const { id } = await account()
  const stored = async (): Promise<string> =>
    (await host.inject({ url: `/auth/admin/users/${id}`, headers: asAdmin })).json().lastRequestAt
  const before = await stored()
  await new Promise(resolve => setTimeout(resolve, 20))
  await host.inject({ url: '/hello', headers: bearer(token) })
  t.ok((await stored()) > before)
  await host.inject({
    method: 'PUT',
    url: `/auth/admin/users/${id}`,
    headers: asAdmin,
    payload: { disabled: true },
  })
  t.equal((await host.inject({ url: '/hello', headers: bearer(token) })).statusCode, 401)
})

const NOTES = `
export default async app => {
  app.get('/:name', async request => ({ ...request.validatedData.params, of: request.user?.firstName }))
}
`
const ADMIN_NOTES = NOTES.replace("'/:name'", "'/:name', { config: { scope: 'users:read' } }").replace(
  'request.user?.firstName',
  "'admin'",
)
const OPEN = `
export default async app => {
  app.post('', { schema: { body: { type: 'object', properties: { a: { type: 'number' } } } } }, async request => request.validatedData.body)
}
`

t.test('routes of the host’s folder are behind the gates of their scopes', async t => {
  const folder = temporaryFolder(t)
  const write = (file: string, text: string): void => {
    mkdirSync(join(folder, file, '..'), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  write('package.json', '{"type":"module"}')
  write('private/notes/deep/routes.js', NOTES)
  write('admin/reports/routes.mjs', ADMIN_NOTES)
  write('public/echo/routes.js', OPEN)
  write('public/echo/helper.js', 'export default async () => { throw new Error() }')
  const options = { routes: pathToFileURL(folder), config: { NODE_ENV: 'test' } } as const
  const host = await buildHost(t, options)
  const token = await tokenAt(host)
  t.equal((await host.inject('/auth/notes/deep/x')).statusCode, 401)
  const note = await host.inject({ url: '/auth/notes/deep/x', headers: bearer(token) })
  t.same(note.json(), { name: 'x', of: 'Ada' })
  t.equal((await host.inject({ url: '/auth/admin/reports/x', headers: bearer(token) })).statusCode, 401)
  t.equal((await host.inject({ url: '/auth/admin/reports/x', headers: asAdmin })).statusCode, 200)
  const echo = await host.inject({ method: 'POST', url: '/auth/echo', payload: { a: 'b' } })
  t.same(echo.json(), { errors: { a: ['must be number'] } })
  const { paths } = (await host.inject('/auth/openapi.json')).json()
  t.same(paths['/notes/deep/{name}'].get.security, [{ bearer: [] }, { cookie: [] }])

  write('admin/unscoped/routes.mjs', NOTES)
  await t.rejects(
    buildHost(t, options).then(host => host.ready()),
    /unscoped\/:name declares no scope: admin routes need one of users:read, /,
  )
  write('secret/routes.js', NOTES)
  await t.rejects(
    buildHost(t, options).then(host => host.ready()),
    /secret has no gate: move it into public, private, admin/,
  )
  rmSync(join(folder, 'secret'), { recursive: true })
  rmSync(join(folder, 'admin/unscoped'), { recursive: true })
  write('public/account/routes.js', `export default async app => { app.get('', async () => ({})) }`)
  await t.rejects(
    buildHost(t, options).then(host => host.ready()),
    { message: `The route GET /auth/account is declared twice: by the core and by the folder ${folder}` },
  )
})

/** @param config of a route with the fields `title` and `rating`, both optional. */
const withFields = (config: string): string => `
export default async app => {
  const body = { type: 'object', properties: { title: { type: 'string' }, rating: { type: 'integer' } } }
  app.put('', { config: ${config}, schema: { body } }, async request => request.validatedData.body)
}
`

t.test('fields of an admin route of the host may need scopes of their own', async t => {
  const hostWith = (scope: string, config: string) => {
    const folder = temporaryFolder(t)
    mkdirSync(join(folder, scope, 'films'), { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    writeFileSync(join(folder, scope, 'films/routes.js'), withFields(config))
    return buildHost(t, { routes: folder, config: { NODE_ENV: 'test' } })
  }
  const host = await hostWith('admin', "{ scope: 'users:read', fieldScopes: { rating: 'events:read' } }")
  const withScopes = async (scopes: string[]) => {
    const headers = asAdmin
    const payload = { name: 'of a test', scopes }
    const created = await host.inject({ method: 'POST', url: '/auth/admin/keys', headers, payload })
    return (payload: object) =>
      host
        .inject({
          method: 'PUT',
          url: '/auth/admin/films',
          headers: { 'x-admin-key': created.json().adminKey },
          payload,
        })
        .then(({ statusCode }) => statusCode)
  }
  for (const [scopes, title, rating, both, none] of [
    [['users:read'], 200, 403, 403, 200],
    [['events:read'], 403, 200, 403, 403],
    [['users:read', 'events:read'], 200, 200, 200, 200],
    [['status:read'], 403, 403, 403, 403],
  ] as const) {
    const put = await withScopes([...scopes])
    t.equal(await put({ title: 'Alien' }), title, `title: ${scopes}`)
    t.equal(await put({ rating: 5 }), rating, `rating: ${scopes}`)
    t.equal(await put({ title: 'Alien', rating: 5 }), both, `both: ${scopes}`)
    t.equal(await put({}), none, `no field: ${scopes}`)
    t.equal(await put({ constructor: 1 }), title, `a field without a scope of its own: ${scopes}`)
  }
  for (const [scope, config, problem] of [
    [
      'admin',
      "{ scope: 'users:read', fieldScopes: { rating: 'x' } }",
      /the scope "x", which is none of users:read/,
    ],
    [
      'admin',
      "{ scope: 'users:read', fieldScopes: { stars: 'events:read' } }",
      /the field "stars", which is no prop/,
    ],
    ['private', "{ fieldScopes: { rating: 'events:read' } }", /PUT .*\/films .*only admin routes check them/],
    ['public', "{ fieldScopes: { rating: 'events:read' } }", /only admin routes check them/],
  ] as const)
    await t.rejects(
      hostWith(scope, config).then(host => host.ready()),
      problem,
      config,
    )
})
