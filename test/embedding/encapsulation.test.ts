import { once } from 'node:events'
import { existsSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:http2'
import { join } from 'node:path'
import cookie from '@fastify/cookie'
import sensible from '@fastify/sensible'
import swagger from '@fastify/swagger'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import gatehouse, { type GatehouseOptions } from '../../src/gatehouse.ts'
import { asAdmin, bearer, logCapture, temporaryFolder } from '../support/build.ts'
import { buildHost, hostConfig, signUpAt, tokenAt } from '../support/host.ts'

/** Registers Gatehouse with options that may be wrong, and starts the host. */
const start =
  (host: FastifyInstance, options: object): (() => Promise<void>) =>
  async () => {
    await host.register(gatehouse, { prefix: '/auth', ...options } as GatehouseOptions)
    await host.ready()
  }

/** A host that has set everything that Gatehouse sets too. */
const busyHost = async (host: FastifyInstance): Promise<void> => {
  await host.register(cookie, { parseOptions: { signed: true, domain: 'host.example' }, secret: 'host' })
  await host.register(sensible)
  await host.register(swagger, { openapi: { info: { title: 'Host', version: '1' } } })
  host.decorate('config', { isHost: true } as never)
  host.decorate('services', 'of the host' as never)
  host.decorateReply('setAccessToken', function setAccessToken() {
    return this.header('x-token', 'of the host')
  })
  host.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) =>
    reply.code(error.statusCode ?? 500).send(`host: ${error.message}`),
  )
  host.setNotFoundHandler((_request, reply) => reply.code(404).send('host: not found'))
  host.setValidatorCompiler(() => () => true)
  host.setSerializerCompiler(() => data => `"host: ${JSON.stringify(data).length}"`)
  host.setReplySerializer(() => '"host"')
  host.addContentTypeParser('text/csv', { parseAs: 'string' }, (_request, body, done) => done(null, body))
  host.addHook('onSend', async (_request, reply) => void reply.header('x-host', 'seen'))
}

t.test('the host keeps its handlers, parsers, hooks, decorators, schemas and OpenAPI', async t => {
  const host = await buildHost(t, { before: busyHost })
  host.post('/text', request => request.body)
  host.get('/fails', { schema: { tags: ['host'] } }, () => {
    throw new Error('broken')
  })
  host.get('/plain', () => ({ any: 1 }))
  host.get('/typed', { schema: { response: { 200: { type: 'string' } } } }, async () => 'typed')

  t.equal((await host.inject('/fails')).body, 'host: broken')
  t.equal((await host.inject('/missing')).body, 'host: not found')
  t.equal(
    (await host.inject('/authority')).body,
    'host: not found',
    'a path that only begins like the prefix',
  )
  t.equal((await host.inject('/plain')).body, '"host"')
  t.not((await host.inject('/plain')).headers['x-content-type-options'], 'nosniff')
  for (const type of ['text/csv', 'text/plain']) {
    const response = await host.inject({
      method: 'POST',
      url: '/text',
      payload: 'a,b',
      headers: { 'content-type': type },
    })
    t.equal(response.body, 'a,b', type)
  }
  t.same(host.getDecorator('config'), { isHost: true })
  t.equal(host.getDecorator('services'), 'of the host')
  t.same(Object.keys(host.swagger().paths ?? {}), ['/text', '/fails', '/plain', '/typed'])

  const signedUp = await signUpAt(host)
  t.equal(signedUp.statusCode, 201, 'and Gatehouse works beside them')
  t.equal(signedUp.headers['x-host'], 'seen', 'hooks of the host run, as for every plugin')
  t.match(signedUp.json(), { accessToken: String, user: { firstName: 'Ada' } })
  t.match(signedUp.headers['set-cookie'], /^ACCESS_TOKEN=[\w.-]+; .*HttpOnly/)
  t.same((await host.inject('/auth/missing')).json(), { errors: { global: ['There is no such route'] } })
  t.equal((await host.inject({ method: 'PUT', url: '/auth/account/sign-in' })).headers.allow, 'POST')
  const text = { method: 'POST', url: '/auth/account/sign-in', payload: 'a' } as const
  t.equal((await host.inject({ ...text, headers: { 'content-type': 'text/csv' } })).statusCode, 415)
  const unknown = await host.inject('/auth/users?x=1')
  t.equal(unknown.statusCode, 401)
  const invalid = await host.inject({
    url: '/auth/users?x=%ff&limit=0',
    headers: bearer(signedUp.json().accessToken),
  })
  t.same(Object.keys(invalid.json().errors).sort(), ['limit', 'x'])
  const document = (await host.inject('/auth/openapi.json')).json()
  t.equal(document.info.title, 'Gatehouse')
  t.ok(document.paths['/account/sign-up'])
  t.notOk(document.paths['/docs'] ?? document.paths['/fails'])
})

t.test('everything below the prefix has the prefix in its URLs', async t => {
  const config = hostConfig(t)
  const host = Fastify()
  t.teardown(() => host.close())
  await host.register(
    async scope => {
      await scope.register(gatehouse, { prefix: '/auth', config })
    },
    { prefix: '/v1' },
  )
  const signedUp = await signUpAt(host, '/v1/auth')
  t.equal(signedUp.headers.location, '/v1/auth/account')
  t.match(signedUp.headers['set-cookie'], /; Path=\/;/, 'the cookie reaches the routes of the host')
  const headers = bearer(signedUp.json().accessToken)
  t.equal((await host.inject({ url: '/v1/auth/account', headers })).statusCode, 200)
  await signUpAt(host, '/v1/auth')
  const list = await host.inject({ url: '/v1/auth/users?limit=1', headers })
  t.match(list.headers.link, /^<\/v1\/auth\/users\?limit=1&cursor=/)
  const created = await host.inject({
    method: 'POST',
    url: '/v1/auth/admin/users',
    headers: asAdmin,
    payload: { email: 'new@example.com' },
  })
  t.equal(created.headers.location, `/v1/auth/admin/users/${created.json().id}`)
  t.equal((await host.inject({ url: String(created.headers.location), headers: asAdmin })).statusCode, 200)

  t.match((await host.inject('/v1/auth')).json(), {
    docs: '/v1/auth/docs',
    openapi: '/v1/auth/openapi.json',
  })
  for (const url of ['/v1/auth', '/v1/auth/']) {
    const page = await host.inject({ url, headers: { accept: 'text/html' } })
    t.equal(page.headers.location, '/v1/auth/docs', url)
  }
  const page = (await host.inject('/v1/auth/docs')).body
  const assets = Array.from(page.matchAll(/(?:href|src)="([^"]+)"/g), ([, asset = '']) => asset)
  t.equal(assets.length, 5)
  for (const asset of assets) {
    const { pathname } = new URL(asset, 'http://host.example/v1/auth/docs')
    t.equal((await host.inject(pathname)).statusCode, 200, pathname)
  }
  const { servers, paths } = (await host.inject('/v1/auth/openapi.json')).json()
  t.same(servers, [{ url: '/v1/auth', description: 'This instance' }])
  t.equal(paths['/health'].get.operationId, 'getHealth', 'names do not depend on the prefix')
  t.same(paths['/health'].get.tags, ['service'])
  t.same(paths['/account'].get.tags, ['account'])
})

t.test('the router, the server and the decorators of a host may differ', async t => {
  const routerOptions = { ignoreTrailingSlash: true, caseSensitive: false }
  const host = await buildHost(t, { server: { routerOptions, exposeHeadRoutes: false } })
  const headers = bearer(await tokenAt(host))
  t.equal((await host.inject({ url: '/AUTH/Account/', headers })).statusCode, 200)
  t.equal((await host.inject({ url: '/auth/admin/users/1/', headers: asAdmin })).statusCode, 400)
  t.equal((await host.inject({ url: '/auth/docs/' })).headers.location, '../docs')
  t.equal((await host.inject({ url: '/auth/docs' })).statusCode, 200)

  const config = hostConfig(t)
  const http2Host = Fastify({ http2: true })
  t.teardown(() => http2Host.close())
  await http2Host.register(gatehouse as never, { prefix: '/auth', config } as never)
  const session = connect(await http2Host.listen({ port: 0 }))
  const request = session.request({ ':path': '/auth/account' })
  const [response] = await once(request, 'response')
  t.match(response, { ':status': 401, 'x-content-type-options': 'nosniff', 'www-authenticate': 'Bearer' })
  session.destroy()
})

t.test('the log of the host has no URLs and tokens of the service (§7.2)', async t => {
  const log = logCapture()
  const host = await buildHost(t, { server: { logger: { level: 'debug', stream: log.stream } } })
  const token = await tokenAt(host)
  await host.inject('/auth/account/verify-email?token=canary')
  await host.inject('/auth/missing?token=canary')
  await host.inject({ url: '/auth/account', headers: bearer(token) })
  t.match(log.records(), [{}, {}, {}, {}], 'lines of requests')
  t.notMatch(log.text(), /canary/)
  t.notOk(log.text().includes(token))
  await host.inject('/missing?host=seen')
  t.match(log.text(), /host=seen/, 'lines of the host are its own')
})

t.test('two hosts, and two services in scopes of one host, are independent', async t => {
  const [one, other] = [await buildHost(t), await buildHost(t, { prefix: '/users/service' })]
  const token = await tokenAt(one)
  t.equal((await one.inject({ url: '/auth/account', headers: bearer(token) })).statusCode, 200)
  t.equal((await other.inject({ url: '/users/service/account', headers: bearer(token) })).statusCode, 401)
  await one.close()
  await tokenAt(other, '/users/service')

  const configs = { a: hostConfig(t), b: hostConfig(t) }
  const host = Fastify()
  t.teardown(() => host.close())
  for (const name of ['a', 'b'] as const) {
    await host.register(async scope => {
      await scope.register(gatehouse, { prefix: `/${name}`, config: configs[name] })
      scope.get(`/who/${name}`, { preHandler: scope.gatehouse.requireUser }, ({ user }) => user.firstName)
    })
  }
  const tokens = {
    a: await tokenAt(host, '/a', { firstName: 'Ada' }),
    b: await tokenAt(host, '/b', { firstName: 'Bob' }),
  }
  t.equal((await host.inject({ url: '/who/a', headers: bearer(tokens.a) })).body, 'Ada')
  t.equal((await host.inject({ url: '/who/b', headers: bearer(tokens.b) })).body, 'Bob')
  t.equal((await host.inject({ url: '/who/b', headers: bearer(tokens.a) })).statusCode, 401)
})

t.test('closing the host closes the service', async t => {
  const config = hostConfig(t)
  const host = await buildHost(t, { config })
  const token = await tokenAt(host)
  const file = String(config.DATABASE_URL).slice('sqlite:'.length)
  t.ok(existsSync(`${file}-wal`))
  await host.close()
  t.notOk(existsSync(`${file}-wal`), 'the store is closed')
  const again = await buildHost(t, { config })
  t.equal((await again.inject({ url: '/auth/account', headers: bearer(token) })).statusCode, 200)
})

t.test('wrong options are one sentence at the start', async t => {
  const folder = temporaryFolder(t)
  const config = hostConfig(t)
  const wrong: [object, string | RegExp][] = [
    [{ prefix: undefined }, 'The prefix must be a path such as /auth, without parameters, not undefined'],
    [{ prefix: '/' }, 'The prefix must be a path such as /auth, without parameters, not "/"'],
    [{ prefix: 'auth' }, 'The prefix must be a path such as /auth, without parameters, not "auth"'],
    [{ prefix: '/:tenant' }, 'The prefix must be a path such as /auth, without parameters, not "/:tenant"'],
    [{ routes: join(folder, 'none') }, `The folder of routes does not exist: ${join(folder, 'none')}`],
    [
      { onEvent: 'print' },
      'onEvent must be a function, or { name, handle, types? } with a name such as searchIndex',
    ],
    [
      { onEvent: { name: 'a b', handle: () => undefined } },
      'onEvent must be a function, or { name, handle, types? } with a name such as searchIndex',
    ],
    [
      { onEvent: { name: 'index', handle: () => undefined, types: 'user.created' } },
      'The types of onEvent must be an array',
    ],
    [
      { mails: { templates: { welcome: () => ({}) } } },
      /^There is no mail welcome: the mails are verification, /,
    ],
    [{ mails: { from: 'a\nb' } }, /MAIL_FROM must be one line such as/],
    [{ config: { ...config, PORT: 'x' } }, /PORT must be an integer from 0 to 65535, not "x"/],
    [{ config: { ...config, PORT: {} } }, /PORT must be text, a number or a boolean/],
    [
      { config: { ...config, PASSWORD_MIN_LENGTH: 7 } },
      /PASSWORD_MIN_LENGTH must be an integer from 8 to 128/,
    ],
  ]
  for (const [options, message] of wrong) {
    const host = Fastify()
    await t.rejects(start(host, { config, ...options }), { message }, String(message))
    await host.close()
  }

  const host = await buildHost(t)
  await t.rejects(
    start(host, { prefix: '/other', config }),
    /already registered here: register each service in a scope of its own/,
  )
  const taken = Fastify()
  taken.decorateRequest('user', null as never)
  await t.rejects(start(taken, { config }), /request\.user belongs to another plugin/)
})

t.test('numbers and booleans are settings too, and NODE_ENV is the process’s', async t => {
  const host = await buildHost(t, {
    config: {
      PASSWORD_MIN_LENGTH: 20,
      REQUIRE_EMAIL_VERIFICATION: true,
      MAIL_URL: undefined,
      DOCS: 'off',
    },
  })
  t.equal((await signUpAt(host, '/auth', { password: 'nineteen characters' })).statusCode, 400)
  t.equal((await signUpAt(host)).statusCode, 202)
  t.equal((await host.inject('/auth/docs')).statusCode, 404)

  const { NODE_ENV } = process.env
  process.env.NODE_ENV = 'production'
  t.teardown(() => {
    if (NODE_ENV === undefined) delete process.env.NODE_ENV
    else process.env.NODE_ENV = NODE_ENV
  })
  const { NODE_ENV: _test, ...config } = hostConfig(t)
  const weak = { ...config, ADMIN_KEY: 'changemechangeme' }
  await t.rejects(start(Fastify(), { config: weak }), /ADMIN_KEY/)
})

t.test('responses and log lines have the host’s request id', async t => {
  const log = logCapture()
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const server = {
    logger: { level: 'debug', stream: log.stream },
    genReqId: ({ headers }: IncomingMessage) => String(headers['x-of-the-host'] ?? 'made-by-the-host'),
  }
  const host = await buildHost(t, { server })
  const ask = async (url: string, id?: string) => {
    const headers = { traceparent, ...(id !== undefined && { 'x-of-the-host': id }) }
    const before = log.records().length
    const response = await host.inject({ url, headers })
    return { sent: response.headers['x-request-id'], lines: log.records().slice(before) }
  }
  for (const url of ['/auth/health', '/auth/account', '/auth/nope'])
    for (const [given, expected] of [
      [undefined, 'made-by-the-host'],
      ['any-client.1', 'any-client.1'],
      ['"not valid"', /^[\da-f]{20}$/],
    ] as const) {
      const { sent, lines } = await ask(url, given)
      t.match(sent, expected, `${url} with ${given}`)
      t.ok(lines.length > 0)
      for (const line of lines) t.match(line, { reqId: sent, traceparent }, `${url} with ${given}`)
    }
  t.equal((await ask('/of-the-host')).sent, undefined, 'other responses are the host’s')
})
