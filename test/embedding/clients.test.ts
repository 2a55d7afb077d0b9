/** Routes of a host that tokens of clients open (docs/embedding.md, "Routes for programs"). */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { asAdmin, bearer, type Context, cookie, temporaryFolder } from '../support/build.ts'
import { buildHost, type HostOptions, tokenAt } from '../support/host.ts'
import { OAUTH_ENV } from '../support/oauth.ts'

const RESOURCE = 'https://id.example.test/reports'

/** A host with the routes `POST /auth/reports` and `GET /auth/operator`. */
const buildWithRoutes = async (
  t: Context,
  options: HostOptions = {},
  more = '',
): Promise<FastifyInstance> => {
  const routes = temporaryFolder(t)
  mkdirSync(join(routes, 'public'))
  const client = `{ resource: '${RESOURCE}', scope: 'reports:write' }`
  writeFileSync(
    join(routes, 'public', 'routes.js'),
    `export default async app => {
      const send = async request => ({ by: request.client.id, scopes: request.client.scopes, body: request.body })
      app.post('/reports', { config: { client: ${client} }, schema: { body: { type: 'object' } } }, send)
      app.get('/operator', { config: { client: { scope: 'users:read' } } }, send)
      app.get('/open', async request => ({ client: request.client }))
      ${more}
    }`,
  )
  const { JWT_SECRET: _, ...config } = { ...OAUTH_ENV, ...options.config }
  return buildHost(t, { ...options, routes, config: { ...config, JWT_SECRET: undefined } })
}

const call = async (
  host: FastifyInstance,
  method: 'POST' | 'PUT' | 'DELETE',
  url: string,
  payload?: object,
) => {
  const response = await host.inject({
    ...{ method, url: `/auth/admin/${url}`, headers: asAdmin },
    ...(payload !== undefined && { payload }),
  })
  if (response.statusCode >= 400) throw new Error(response.body)
  return response.body === '' ? {} : response.json()
}

const newClient = async (host: FastifyInstance, scopes: readonly string[] = ['reports:write']) =>
  call(host, 'POST', 'clients', {
    ...{ name: 'Reports', grantTypes: ['client_credentials'] },
    ...{ scopes, adminScopes: ['users:read', 'events:read'] },
  })

type Client = Readonly<Record<'id' | 'secret', string>>

const form = (host: FastifyInstance, path: string, { id, secret }: Client, parameters: object) =>
  host.inject({
    method: 'POST',
    url: `/auth/oauth/${path}`,
    headers: {
      authorization: `Basic ${btoa(`${id}:${secret}`)}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    payload: new URLSearchParams({ ...parameters }).toString(),
  })

const tokenOf = async (host: FastifyInstance, client: Client, parameters: object = {}): Promise<string> =>
  (await form(host, 'token', client, { grant_type: 'client_credentials', ...parameters })).json().access_token

const addResource = (host: FastifyInstance, identifier = RESOURCE) =>
  call(host, 'POST', 'resources', {
    ...{ identifier, name: 'Reports', scopes: { 'reports:write': 'Write', 'reports:read': 'Read' } },
  })

t.test('a token of a client opens the routes of its resource, and nothing else does', async t => {
  const host = await buildWithRoutes(t)
  await addResource(host)
  await addResource(host, 'https://other.example.test')
  const client = await newClient(host, ['reports:write', 'reports:read'])
  const token = await tokenOf(host, client, { resource: RESOURCE })
  const post = (headers: Record<string, string>) =>
    host.inject({ method: 'POST', url: '/auth/reports', headers, payload: { a: 1 } })
  for (const _ of ['from the store', 'from memory'])
    t.match((await post(bearer(token))).json(), { by: client.id, body: { a: 1 } })
  t.same((await host.inject({ url: '/auth/open', headers: bearer(token) })).json(), { client: null })
  const user = await tokenAt(host)
  const foreign = await tokenOf(host, client, { resource: 'https://other.example.test' })
  const own = await tokenOf(host, client)
  const refused = { user: bearer(user), cookie: cookie(token), 'the cookie of a user': cookie(user) }
  const others = { foreign: bearer(foreign), own: bearer(own), 'an admin key': asAdmin, nothing: {} }
  for (const [name, headers] of Object.entries({ ...refused, ...others }))
    t.equal((await post(headers as Record<string, string>)).statusCode, 401, name)
  const none = await post({})
  const metadata = 'resource_metadata="https://id.example.test/.well-known/oauth-protected-resource/reports"'
  t.equal(none.headers['www-authenticate'], `Bearer ${metadata}`)
  t.match((await post(bearer('x'))).headers['www-authenticate'], 'error="invalid_token"')
  const narrow = await tokenOf(host, client, { resource: RESOURCE, scope: 'reports:read' })
  const forbidden = await post(bearer(narrow))
  t.equal(forbidden.statusCode, 403)
  t.match(forbidden.headers['www-authenticate'], 'error="insufficient_scope", scope="reports:write"')
  // Before the body is read.
  const early = await host.inject({
    ...{
      method: 'POST',
      url: '/auth/reports',
      headers: { 'content-type': 'application/json' },
      payload: '{',
    },
  })
  t.equal(early.statusCode, 401)

  const operator = async (presented: string) =>
    (await host.inject({ url: '/auth/operator', headers: bearer(presented) })).statusCode
  t.equal(await operator(own), 200)
  t.equal(await operator(token), 401, 'of a resource')
  t.equal(await operator(await tokenOf(host, client, { scope: 'events:read' })), 403)
  t.equal(await operator(user), 401)
  const document = (await host.inject('/auth/openapi.json')).json()
  t.strictSame(document.paths['/reports'].post.security, [{ bearer: [] }])
})

t.test('revocation, a lost scope and a deletion end it at once', async t => {
  const host = await buildWithRoutes(t)
  await addResource(host)
  const client = await newClient(host)
  const parameters = { resource: RESOURCE }
  const [token, second] = [await tokenOf(host, client, parameters), await tokenOf(host, client, parameters)]
  const status = async (presented: string) =>
    (await host.inject({ method: 'POST', url: '/auth/reports', headers: bearer(presented), payload: {} }))
      .statusCode
  for (const each of [token, second]) t.equal(await status(each), 200)
  await form(host, 'revoke', client, { token })
  t.equal(await status(token), 401)
  t.equal(await status(second), 200)
  await call(host, 'PUT', `clients/${client.id}`, { scopes: [] })
  t.equal(await status(second), 403)
  await call(host, 'PUT', `clients/${client.id}`, { scopes: ['reports:write'] })
  t.equal(await status(second), 200)
  await call(host, 'DELETE', `clients/${client.id}`)
  t.equal(await status(second), 401)
})

t.test('requireClient guards other routes of the host', async t => {
  const host = await buildWithRoutes(t)
  const { requireClient } = host.gatehouse
  const guard = requireClient({ resource: RESOURCE, scope: 'reports:write' })
  host.get('/reports', { onRequest: guard, preHandler: guard }, request => request.client?.id)
  await addResource(host)
  const client = await newClient(host)
  const headers = bearer(await tokenOf(host, client, { resource: RESOURCE }))
  t.equal((await host.inject({ url: '/reports', headers })).body, client.id)
  t.equal((await host.inject({ url: '/reports', headers: bearer(await tokenAt(host)) })).statusCode, 401)
  t.throws(() => requireClient({ scope: 'unknown' }), {
    message: /^requireClient declares the scope "unknown"/,
  })
})

t.test('what a route cannot declare stops the start', async t => {
  const wrong = {
    "{ scope: 'unknown' }": /declares the scope "unknown", which is none of/,
    '{}': /declares client: \{\}, which names no scope/,
    "{ scope: 'a', resource: 'x' }": /declares the resource "x"/,
  }
  for (const [declared, message] of Object.entries(wrong)) {
    const host = await buildWithRoutes(
      t,
      {},
      `app.get('/wrong', { config: { client: ${declared} } }, async () => 1)`,
    )
    await t.rejects(async () => host.ready(), { message })
  }
})

t.test('with OAUTH=off nothing opens them', async t => {
  const host = await buildWithRoutes(t, { config: { OAUTH: 'off' } })
  t.equal((await host.inject({ method: 'POST', url: '/auth/reports', payload: {} })).statusCode, 401)
})
