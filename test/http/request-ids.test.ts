/**
 * Every response has an id, which the log lines of its request have too, with the trace the request belongs to (docs/design.md,
 * "Observability").
 */
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { createRequestIds } from '#http/request-ids'
import { asAdmin, bearer, build, logCapture, signUp } from '../support/build.ts'
import { lines, RawConnection } from '../support/raw-http.ts'
import { until } from '../support/until.ts'

const OWN = /^[\da-f]{20}$/

/** Milliseconds until a missing line counts as a failure. */
const DEADLINE = 5_000

const TRACE = '0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

const portOf = async (app: FastifyInstance): Promise<number> => {
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as AddressInfo).port
}

const log = logCapture()
const app = await build(t, {
  logStream: log.stream,
  env: { LOG_LEVEL: 'debug', MAIL_URL: 'off', WEB_URL: 'https://app.example.com', PAGES: 'off' },
})
const port = await portOf(app)
const { token } = await signUp(app)

/** The log lines with an id, once there is one. */
const linesOf = (id: string | undefined): Promise<Record<string, unknown>[]> =>
  until(
    () => log.records().filter(({ reqId }) => reqId === id),
    found => found.length > 0,
    DEADLINE,
  )

const HOST = `Host: 127.0.0.1:${port}`
const SESSION = `Authorization: Bearer ${token}`
const OTHER_SESSION = `Authorization: Bearer ${(await signUp(app)).token}`
const KEY = `X-Admin-Key: ${asAdmin['x-admin-key']}`

/** The bytes of one request, and the status of its response. Errors are logged. */
const REQUESTS: Record<string, readonly [status: number, bytes: string]> = {
  'the cached text of GET /account': [200, lines('GET /account HTTP/1.1', HOST, SESSION)],
  HEAD: [200, lines('HEAD /account HTTP/1.1', HOST, SESSION)],
  'no content': [204, lines('DELETE /account/sessions HTTP/1.1', HOST, OTHER_SESSION)],
  'a file': [200, lines('GET /docs/static/index.css HTTP/1.1', HOST)],
  'a stream': [200, lines('GET /admin/users/export HTTP/1.0', KEY)],
  'a redirect': [303, lines('GET /docs/ HTTP/1.1', HOST)],
  'a failed redirect': [303, lines('GET /account/verify-email?token=x HTTP/1.1', HOST, 'Accept: text/html')],
  'failed authentication': [401, lines('GET /account HTTP/1.1', HOST)],
  'an unknown route': [404, lines('GET /nope HTTP/1.1', HOST)],
  'a wrong method': [405, lines('PATCH /account HTTP/1.1', HOST)],
  'a malformed URL': [400, lines('GET /%zz HTTP/1.1', HOST)],
  'an invalid Host': [400, lines('GET /health HTTP/1.1', 'Host: a b')],
  'an ambiguous length': [
    501,
    lines('POST /account/sign-in HTTP/1.1', HOST, 'Transfer-Encoding: gzip, chunked'),
  ],
  'an unknown version': [505, lines('GET /health HTTP/1.2', HOST)],
  'what is not HTTP': [400, 'not http\r\n\r\n'],
  'header fields that are too large': [431, lines('GET / HTTP/1.1', HOST, `X-A: ${'a'.repeat(20_000)}`)],
  CONNECT: [400, lines('CONNECT a:80 HTTP/1.1', 'Host: a:80')],
}

t.test('every response has an id of its own, with which its error is logged', async t => {
  const ids = new Set<string>()
  for (const [title, [status, bytes]] of Object.entries(REQUESTS)) {
    const connection = new RawConnection(port).write(bytes)
    const head = await until(
      () => connection.received,
      text => text.includes('\r\n\r\n'),
      DEADLINE,
    )
    connection.socket.destroy()
    t.ok(head.startsWith(`HTTP/1.1 ${status} `), `${title}: ${head.split('\r\n', 1)[0]}`)
    const found = [...head.matchAll(/^x-request-id: (.*)\r$/gim)].map(([, id = '']) => id)
    t.equal(found.length, 1, `${title}: one id`)
    t.match(found[0], OWN, title)
    ids.add(found[0] ?? '')
    if (status >= 400) t.equal((await linesOf(found[0])).length, 1, `${title}: one log line`)
  }
  t.equal(ids.size, Object.keys(REQUESTS).length, 'all differ')
})

t.test('pipelined responses have the ids of their requests', async t => {
  const paths = ['/nope/1', '/account', '/nope/2']
  const connection = new RawConnection(port)
  connection.write(paths.map(path => lines(`DELETE ${path} HTTP/1.1`, HOST)).join(''))
  const responses = await connection.untilResponses(paths.length)
  connection.socket.destroy()
  t.strictSame(
    responses.map(({ statusCode }) => statusCode),
    [404, 401, 404],
  )
  for (const { statusCode, headers } of responses)
    t.match(await linesOf(String(headers['x-request-id'])), [{ status: statusCode }])
})

t.test('a malformed body is logged with the id and the trace of its request', async t => {
  const traceparent = `00-${TRACE}`
  const head = ['POST /account/sign-in HTTP/1.1', HOST, `Traceparent: ${traceparent}`]
  const connection = new RawConnection(port)
  connection.write(
    `${lines(...head, 'Content-Type: application/json', 'Transfer-Encoding: chunked')}1\r\n{\r\nZ\r\n`,
  )
  const [response] = await connection.untilClosed()
  t.equal(response?.statusCode, 400)
  const logged = await linesOf(String(response?.headers['x-request-id']))
  t.match(logged[0], { msg: 'malformed HTTP or timeout', traceparent })
})

t.test('an id is accepted from a trusted proxy alone, and only if it is valid', async t => {
  const trusting = await build(t, { env: { TRUST_PROXY: '10.0.0.0/8,2001:db8::1' } })
  const idFor = async (of: FastifyInstance, remoteAddress: string, id: string) => {
    const response = await of.inject({ url: '/health', remoteAddress, headers: { 'x-request-id': id } })
    return response.headers['x-request-id']
  }
  const uuid = 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'
  for (const id of [uuid, 'a', 'a'.repeat(128), 'Zm9v+/=~', 'host:1.2_3@x'])
    for (const proxy of ['10.1.2.3', '::ffff:10.1.2.3', '2001:db8::1'])
      t.equal(await idFor(trusting, proxy, id), id, `${id} from ${proxy}`)
  for (const id of ['', 'a'.repeat(129), 'a b', 'a,b', 'a"b', 'a<b', 'a;b', 'é', 'a\tb', '{a}'])
    t.match(await idFor(trusting, '10.1.2.3', id), OWN, `replaced: ${id}`)
  for (const client of ['192.0.2.1', '2001:db8::2', '127.0.0.1'])
    t.match(await idFor(trusting, client, uuid), OWN, `from ${client}`)
  t.match(await idFor(app, '10.1.2.3', uuid), OWN, 'without TRUST_PROXY')
  const twice = await trusting.inject({
    url: '/health',
    remoteAddress: '10.1.2.3',
    headers: { 'x-request-id': ['a', 'b'] },
  })
  t.match(twice.headers['x-request-id'], OWN, 'of several none')
  const forwarded = { 'x-request-id': uuid, 'x-forwarded-for': '10.1.2.3' }
  const claimed = await trusting.inject({ url: '/health', remoteAddress: '192.0.2.1', headers: forwarded })
  t.match(claimed.headers['x-request-id'], OWN, 'X-Forwarded-For proves nothing')
})

t.test('a client whose address is unknown is no proxy', t => {
  const ids = createRequestIds(['10.0.0.0/8'])
  const request = { headers: { 'x-request-id': 'given' }, socket: { remoteAddress: undefined } }
  t.match(ids.of(request as unknown as IncomingMessage), OWN)
  t.end()
})

t.test('on a real connection too', async t => {
  const trusting = await build(t, { env: { TRUST_PROXY: 'loopback' } })
  const connection = new RawConnection(await portOf(trusting))
  const get = lines('GET /health HTTP/1.1', 'Host: a', 'X-Request-Id: from-the-proxy')
  const bad = lines('GET /%zz HTTP/1.1', 'Host: a', 'X-Request-Id: second')
  const responses = await connection.write(get + bad).untilClosed()
  t.strictSame(
    responses.map(({ headers }) => headers['x-request-id']),
    ['from-the-proxy', 'second'],
  )
})

const VALID = [
  [`00-${TRACE}`, `00-${TRACE}`],
  [`cc-${TRACE}`, `cc-${TRACE}`],
  [`cc-${TRACE}-what-comes-later`, `cc-${TRACE}`],
] as const
const INVALID = [
  '',
  `00-${TRACE}-more`,
  `00-${TRACE}-`,
  `ff-${TRACE}`,
  `cc-${TRACE}.more`,
  `00-${TRACE.toUpperCase()}`,
  `0-${TRACE}`,
  TRACE,
  `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
  `00-0af7651916cd43dd8448eb211c80319c-${'0'.repeat(16)}-01`,
  `00-${TRACE}, 00-${TRACE}`,
  `00-${TRACE.slice(1)}`,
  `00-${TRACE.replace('b7', 'g7')}`,
]

for (const env of [{}, { LOG_REQUESTS: 'on' }])
  t.test(`lines of a request have its trace ${JSON.stringify(env)}`, async t => {
    const capture = logCapture()
    const extend = (extended: FastifyInstance): void => {
      extended.get('/logs', request => {
        request.log.info('a line')
        request.log.child({ more: 1 }).info('a line')
        throw new Error('an error')
      })
    }
    const traced = await build(t, { env, extend, logStream: capture.stream })
    const linesFor = async (traceparent: string) => {
      const before = capture.records().length
      const headers = { traceparent }
      const response = await traced.inject({ url: '/logs', headers })
      const records = capture.records().slice(before)
      t.ok(records.length >= 3)
      for (const record of records) t.equal(record.reqId, response.headers['x-request-id'])
      return records
    }
    for (const [sent, logged] of VALID)
      for (const { traceparent } of await linesFor(sent)) t.equal(traceparent, logged, sent)
    for (const sent of INVALID)
      for (const record of await linesFor(sent)) t.notOk('traceparent' in record, `dropped: ${sent}`)
    t.equal((await traced.inject({ url: '/account', headers: bearer('x.y.z') })).statusCode, 401)
    t.match(capture.records().at(-1), { reqId: OWN }, 'security lines too')
  })
