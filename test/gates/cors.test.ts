/** The headers of CORS (docs/design.md, "Tokens and sessions"): for which origins, on which responses, and none without `CORS_ORIGINS`. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { asAdmin, bearer, build, cookie, signUp } from '../support/build.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { buildHost, signUpAt } from '../support/host.ts'
import { liveRoutes } from '../support/routes.ts'

const READER = 'https://reader.example'
const BOTH = 'https://app.example'
const COOKIE_ONLY = 'https://forms.example'

const ENV = { CORS_ORIGINS: `${READER}, ${BOTH}`, ALLOWED_ORIGINS: `${BOTH},${COOKIE_ONLY}` }

/** Origins that differ from an allowed one by what a sloppy comparison overlooks. */
const OTHERS = [
  COOKIE_ONLY,
  'null',
  '*',
  'http://reader.example',
  'https://reader.example:8443',
  'https://reader.example.evil.example',
  'https://evilreader.example',
  'https://sub.reader.example',
  'https://READER.example',
  'https://reader.example/',
  `${READER}, ${BOTH}`,
  `${READER} ${BOTH}`,
  'undefined',
  '__proto__',
  '',
]

const corsHeadersOf = ({ headers }: LightMyRequestResponse): string[] =>
  Object.keys(headers).filter(name => name.startsWith('access-control-'))

/** As a browser sends it before a request that is not simple. */
const preflight = (app: FastifyInstance, url: string, origin: string, method = 'GET') =>
  app.inject({
    method: 'OPTIONS',
    url,
    headers: {
      origin,
      'access-control-request-method': method,
      'access-control-request-headers': 'authorization,x-admin-key',
      'access-control-request-private-network': 'true',
    },
  })

t.test('without CORS_ORIGINS no response has a header of CORS', async t => {
  const app = await build(t, { env: { ALLOWED_ORIGINS: READER } })
  const { token } = await signUp(app)
  for (const url of ['/account', '/health', '/unknown']) {
    const response = await app.inject({ url, headers: { ...bearer(token), origin: READER } })
    t.same(corsHeadersOf(response), [], url)
    t.equal(response.headers.vary, undefined, url)
  }
  const asked = await preflight(app, '/account', READER)
  globalErrorOf(t, asked, 405)
  t.same(corsHeadersOf(asked), [])
})

t.test('every response to an allowed origin can be read, errors too', async t => {
  const app = await build(t, {
    env: ENV,
    extend: app =>
      app.get('/fails', () => {
        throw new Error('broken')
      }),
  })
  const { token } = await signUp(app)
  const requests: [number, InjectOptions][] = [
    [200, { url: '/account', headers: bearer(token) }],
    [200, { method: 'HEAD', url: '/health' }],
    [200, { url: '/openapi.json' }],
    [200, { url: '/docs/static/swagger-ui.css' }],
    [200, { url: '/' }],
    [304, { url: '/docs', headers: { 'if-none-match': '*' } }],
    [303, { url: '/', headers: { accept: 'text/html' } }],
    [400, { method: 'POST', url: '/account/sign-in', payload: {} }],
    [400, { url: '/account/verify-email?token=x' }],
    [401, { url: '/account' }],
    [401, { url: '/account', headers: bearer('x') }],
    [401, { url: '/admin/users' }],
    [403, { method: 'PUT', url: '/account', headers: { ...cookie(token), 'sec-fetch-site': 'cross-site' } }],
    [404, { url: '/unknown' }],
    [404, { url: '/admin/users/01890000-0000-7000-8000-000000000000', headers: asAdmin }],
    [405, { method: 'DELETE', url: '/users' }],
    [413, { method: 'POST', url: '/account/sign-in', payload: { email: 'a'.repeat(20_000) } }],
    [
      415,
      { method: 'POST', url: '/account/sign-in', payload: 'a', headers: { 'content-type': 'text/plain' } },
    ],
    [500, { url: '/fails' }],
  ]
  for (const [status, request] of requests) {
    const title = `${request.method ?? 'GET'} ${request.url}`
    for (const origin of [READER, ...(status === 403 ? [] : [BOTH])]) {
      const response = await app.inject({ ...request, headers: { ...request.headers, origin } })
      t.equal(response.statusCode, status, title)
      t.equal(response.headers['access-control-allow-origin'], origin, title)
      const credentials = response.headers['access-control-allow-credentials']
      t.equal(credentials, origin === BOTH ? 'true' : undefined, title)
      t.match(response.headers['access-control-expose-headers'], /\bretry-after\b.*\bwww-authenticate\b/)
      t.match(response.headers.vary, /^origin\b/, title)
    }
    const other = await app.inject({ ...request, headers: { ...request.headers, origin: OTHERS[4] } })
    t.same(corsHeadersOf(other), [], `${title} to another origin`)
    t.match(other.headers.vary, /^origin\b/, 'a cache keeps the two apart')
  }
  const page = await app.inject({ url: '/', headers: { origin: READER } })
  t.equal(page.headers.vary, 'origin, accept', 'besides what else the response depends on')
})

t.test('only exact origins are allowed, and none is reflected', async t => {
  const app = await build(t, { env: ENV })
  for (const origin of OTHERS) {
    const response = await app.inject({ url: '/health', headers: { origin } })
    t.equal(response.statusCode, 200)
    t.same(corsHeadersOf(response), [], origin)
    const asked = await preflight(app, '/health', origin)
    globalErrorOf(t, asked, 405)
    t.same(corsHeadersOf(asked), [], `a preflight of ${origin}`)
  }
  const none = await app.inject('/health')
  t.same(corsHeadersOf(none), [])
  t.equal(none.headers.vary, 'origin')
})

t.test('a preflight names the methods of the path, before any gate', async t => {
  const app = await build(t, { env: { ...ENV, RATE_LIMIT: 'on' } })
  const methods = Map.groupBy(liveRoutes(app), ({ url }) => url)
  for (const [url, routes] of methods) {
    const response = await preflight(app, url.replace(/:\w+/g, 'x'), READER)
    t.equal(response.statusCode, 204, url)
    t.equal(response.body, '')
    const names = routes.map(({ method }) => method).sort()
    t.equal(response.headers['access-control-allow-methods'], names.join(', '), url)
  }
  const { headers } = await preflight(app, '/account?x=1', READER, 'DELETE')
  t.match(headers, {
    'access-control-allow-origin': READER,
    'access-control-allow-methods': 'DELETE, GET, HEAD, PUT',
    'access-control-max-age': '7200',
    vary: 'origin',
  })
  t.notOk('access-control-allow-credentials' in headers)
  t.notOk('access-control-allow-private-network' in headers)
  t.notOk('access-control-expose-headers' in headers)
  t.notOk('ratelimit' in headers)
  const allowed = String(headers['access-control-allow-headers']).split(', ')
  for (const name of ['authorization', 'content-type', 'if-match']) t.ok(allowed.includes(name), name)
  t.notOk(allowed.includes('x-admin-key'), 'admin keys do not belong in browsers')
  t.notOk(allowed.includes('*'))
  t.equal((await preflight(app, '/account', BOTH)).headers['access-control-allow-credentials'], 'true')
  const unknown = await preflight(app, '/unknown', READER, 'POST')
  t.match(unknown, { statusCode: 204, headers: { 'access-control-allow-methods': '' } })
})

t.test('an OPTIONS request that is no preflight is 405 or 404 as without CORS', async t => {
  const app = await build(t, { env: ENV })
  for (const headers of [{}, { origin: READER }, { 'access-control-request-method': 'GET' }]) {
    const known = await app.inject({ method: 'OPTIONS', url: '/account', headers })
    globalErrorOf(t, known, 405)
    t.equal(known.headers.allow, 'DELETE, GET, HEAD, PUT')
    globalErrorOf(t, await app.inject({ method: 'OPTIONS', url: '/unknown', headers }), 404)
  }
})

t.test('a preflight keeps the rules of HTTP, and its connection stays open', async t => {
  const app = await build(t, { env: ENV })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.setEncoding('utf8')
  const asked = (...more: string[]) =>
    [
      'OPTIONS /account HTTP/1.1',
      `Origin: ${READER}`,
      'Access-Control-Request-Method: PUT',
      ...more,
      '\r\n',
    ].join('\r\n')
  const plain = 'GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  socket.write(asked() + asked('Host: x') + asked('Host: x', 'Content-Length: 3').concat('abc') + plain)
  let received = ''
  socket.on('data', text => {
    received += text
  })
  await once(socket, 'end')
  const statuses = Array.from(received.matchAll(/HTTP\/1\.1 (\d+) /g), ([, status]) => status)
  t.same(statuses, ['400', '204', '204', '200'], 'no Host is 400; then two preflights')
})

t.test('in a host, only responses below the prefix change', async t => {
  const host = await buildHost(t, { config: ENV })
  host.get('/own', async () => 'own')
  const headers = { origin: READER }
  t.same(corsHeadersOf(await host.inject({ url: '/own', headers })), [])
  t.equal((await host.inject({ url: '/own', headers })).headers.vary, undefined)
  t.equal((await preflight(host, '/own', READER)).statusCode, 404)
  const failed = await host.inject({ url: '/auth/account', headers })
  t.match(failed, { statusCode: 401, headers: { 'access-control-allow-origin': READER } })
  t.match((await preflight(host, '/auth/account', READER)).headers, {
    'access-control-allow-methods': 'DELETE, GET, HEAD, PUT',
  })
})

t.test('beside a CORS plugin of the host, the rule for the cookie holds', async t => {
  const host = await buildHost(t, {
    config: ENV,
    before: host => {
      // As @fastify/cors does it: credentials for every origin, the origin for its own.
      host.decorateRequest('corsPreflightEnabled', false)
      host.addHook('onRequest', async (request, reply) => {
        reply.header('vary', 'Origin').header('access-control-allow-credentials', 'true')
        if (request.headers.origin === 'https://host.example')
          reply.header('access-control-allow-origin', 'https://host.example')
      })
      host.options('*', async (_request, reply) => reply.code(204).send())
    },
  })
  t.equal((await signUpAt(host)).statusCode, 201)
  const headersFor = async (origin: string) =>
    (await host.inject({ url: '/auth/account', headers: { origin } })).headers
  const reader = await headersFor(READER)
  t.equal(reader['access-control-allow-origin'], READER)
  t.notOk('access-control-allow-credentials' in reader)
  t.equal(reader.vary, 'Origin')
  t.equal((await headersFor(BOTH))['access-control-allow-credentials'], 'true')
  t.equal((await headersFor('https://host.example'))['access-control-allow-origin'], 'https://host.example')
})

interface Documented {
  readonly paths: Record<string, Record<string, { responses: Record<string, { headers?: object }> }>>
}

t.test('pages can read every documented response header', async t => {
  const app = await build(t, { env: ENV })
  const { paths } = (await app.inject('/openapi.json')).json<Documented>()
  const documented = Object.values(paths)
    .flatMap(path => Object.values(path))
    .flatMap(({ responses }) => Object.values(responses))
    .flatMap(({ headers = {} }) => Object.keys(headers))
    .map(name => name.toLowerCase())
  const { headers } = await app.inject({ url: '/health', headers: { origin: READER } })
  const exposed = String(headers['access-control-expose-headers']).split(', ')
  // Browsers hide cookies from pages in any case.
  const hidden = documented.filter(name => name !== 'set-cookie' && !exposed.includes(name))
  t.ok(documented.includes('retry-after'))
  t.strictSame([...new Set(hidden)], [])
})
