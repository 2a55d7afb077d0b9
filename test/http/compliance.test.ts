/** RFC 9112 on real sockets, before and outside Fastify, with the error body (docs/design.md, "Errors"). */
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { bearer, build, logCapture, signUp } from '../support/build.ts'
import { errorsAt, errorsOf, globalErrorOf } from '../support/error-response.ts'
import { exchange, parseResponse } from '../support/process.ts'
import { lines } from '../support/raw-http.ts'

const log = logCapture()
const app = await build(t, { logStream: log.stream, env: { LOG_LEVEL: 'debug', RATE_LIMIT: 'off' } })
await app.listen({ port: 0, host: '127.0.0.1' })
const { port } = app.server.address() as AddressInfo

const HOST = `Host: 127.0.0.1:${port}`
const CLOSE = 'Connection: close'

/** Asserts a response whose length equals its Content-Length. */
const ask = async (request: string | Buffer, silence?: number) => {
  const raw = await exchange(port, request, silence)
  const { status, headers, body } = parseResponse(raw)
  return { statusCode: status, headers, body, raw }
}

/** The number of responses in the received bytes. */
const statusesIn = (raw: string): number[] =>
  [...raw.matchAll(/HTTP\/1\.[01] (\d{3}) /g)].map(match => Number(match[1]))

const healthy = lines('GET /health HTTP/1.1', HOST, CLOSE)

const stillServes = async (t: { equal(found: unknown, wanted: unknown, title: string): unknown }) =>
  t.equal((await ask(healthy)).statusCode, 200, 'and the service goes on')

t.test('header overflow is 431 (RFC 6585 §5)', async t => {
  const large = lines('GET /health HTTP/1.1', HOST, `X-Large: ${'x'.repeat(70_000)}`)
  globalErrorOf(t, await ask(large), 431, 'one large field')
  const fields = (count: number): string[] => Array.from({ length: count }, (_, index) => `X-${index}: 1`)
  const many = lines('GET /health HTTP/1.1', HOST, CLOSE, ...fields(1100))
  globalErrorOf(t, await ask(many), 431, 'over 1,000 fields: none may vanish silently')
  const hidden = lines('GET /health HTTP/1.1', HOST, CLOSE, ...fields(999), 'Host: evil.example')
  globalErrorOf(t, await ask(hidden), 431, 'a second Host behind them')
  const secret = lines('GET /account HTTP/1.1', HOST, CLOSE, ...fields(999), 'Cookie: ACCESS_TOKEN=x')
  globalErrorOf(t, await ask(secret), 431, 'a cookie behind them')
  const some = lines('GET /health HTTP/1.1', HOST, CLOSE, ...fields(500))
  t.equal((await ask(some)).statusCode, 200, 'five hundred are fine')
  await stillServes(t)
})

t.test('malformed HTTP is 400 (RFC 9112 §3)', async t => {
  const requests = {
    garbage: 'hello there\r\n\r\n',
    'a space in the target': lines('GET /he alth HTTP/1.1', HOST),
    'no target': lines('GET  HTTP/1.1', HOST),
    'a method that is no token': lines('G@T /health HTTP/1.1', HOST),
    'a space before the colon': lines('GET /health HTTP/1.1', HOST, 'X-A : 1'),
    'a field without a colon': lines('GET /health HTTP/1.1', HOST, 'nonsense'),
    'NUL in a field': lines('GET /health HTTP/1.1', HOST, 'X-A: a\0b'),
    'a folded field': lines('GET /health HTTP/1.1', HOST, 'X-A: a', ' b'),
    'a bare CR': `GET /health HTTP/1.1\r\n${HOST}\r\nX-A: a\rX-B: b\r\n\r\n`,
    TLS: Buffer.from('16030100c8010000c40303', 'hex'),
  }
  for (const [title, request] of Object.entries(requests)) globalErrorOf(t, await ask(request), 400, title)
  await stillServes(t)
})

t.test('HTTP/1.1 needs exactly one Host, HTTP/1.0 none (RFC 9112 §3.2)', async t => {
  globalErrorOf(t, await ask(lines('GET /health HTTP/1.1', CLOSE)), 400, 'no Host')
  globalErrorOf(t, await ask(lines('GET /health HTTP/1.1', HOST, HOST, CLOSE)), 400, 'twice the same')
  globalErrorOf(
    t,
    await ask(lines('GET /health HTTP/1.1', HOST, 'Host: evil.example', CLOSE)),
    400,
    'two Hosts',
  )
  globalErrorOf(
    t,
    await ask(lines('GET /health HTTP/1.1', HOST, 'hOST: evil.example', CLOSE)),
    400,
    'in any case',
  )
  globalErrorOf(t, await ask(lines('GET /health HTTP/1.0', HOST, HOST)), 400, 'two Hosts on HTTP/1.0')
  globalErrorOf(t, await ask(lines('GET /nope HTTP/1.1', CLOSE)), 400, 'before the route is looked up')
  t.equal((await ask(lines('GET /health HTTP/1.0'))).statusCode, 200, 'HTTP/1.0 without')
  t.equal((await ask(lines('GET /health HTTP/1.0', HOST))).statusCode, 200, 'HTTP/1.0 with')
})

t.test('ambiguous lengths are 400 and close the connection (RFC 9112 §6.1, §6.3)', async t => {
  const post = ['POST /account/sign-in HTTP/1.1', HOST, 'Content-Type: application/json']
  const chunked = 'Transfer-Encoding: chunked'
  const requests = {
    'Content-Length with Transfer-Encoding': `${lines(...post, 'Content-Length: 2', chunked)}0\r\n\r\n`,
    'two different lengths': `${lines(...post, 'Content-Length: 2', 'Content-Length: 3')}{} `,
    'a list of lengths': `${lines(...post, 'Content-Length: 2, 3')}{} `,
    'a negative length': `${lines(...post, 'Content-Length: -2')}{}`,
    'a length with a sign': `${lines(...post, 'Content-Length: +2')}{}`,
    'a hexadecimal length': `${lines(...post, 'Content-Length: 0x2')}{}`,
    'a bad chunk size': `${lines(...post, chunked)}zz\r\n{}\r\n0\r\n\r\n`,
    'a chunk longer than its size': `${lines(...post, chunked)}1\r\n{}\r\n0\r\n\r\n`,
  }
  for (const [title, request] of Object.entries(requests)) {
    const response = await ask(request + healthy)
    const last = response.raw.slice(response.raw.lastIndexOf('HTTP/1.1 '))
    t.notOk(statusesIn(response.raw).includes(200), `${title}: what follows is not served`)
    const { status, headers, body } = parseResponse(last)
    globalErrorOf(t, { statusCode: status, headers, body }, 400, title)
  }
  await stillServes(t)
})

t.test('a valid chunked body is read (RFC 9112 §7.1)', async t => {
  const json = JSON.stringify({ email: 'nobody@example.com', password: 'not anybody at all' })
  const chunks = [json.slice(0, 5), json.slice(5)].map(each => `${each.length.toString(16)}\r\n${each}\r\n`)
  const head = ['POST /account/sign-in HTTP/1.1', HOST, 'Content-Type: application/json', CLOSE]
  const response = await ask(
    `${lines(...head, 'Transfer-Encoding: chunked')}${chunks.join('')}0\r\n\r\n`,
    5000,
  )
  errorsAt(t, response, 401, ['credentials'])
  const long = `4001\r\n${' '.repeat(0x4001)}\r\n0\r\n\r\n`
  const rejected = await ask(lines(...head, 'Transfer-Encoding: chunked') + long)
  globalErrorOf(t, rejected, 413, 'over the limit, without a Content-Length')
})

t.test('invalid URLs are 400, unknown ones 404 (RFC 3986 §2.1)', async t => {
  const get = (target: string) => ask(lines(`GET ${target} HTTP/1.1`, HOST, CLOSE))
  for (const target of ['/%E0%A4%A', '/%zz', '/%', '/admin/users/%ff', '/account/%c0%af'])
    globalErrorOf(t, await get(target), 400, target)
  const head = await ask(lines('HEAD /%zz HTTP/1.1', HOST, CLOSE))
  t.equal(head.statusCode, 400)
  t.equal(head.body, '', 'HEAD without a body')
  for (const target of [
    '/nope',
    '/../etc/passwd',
    '/admin/../health',
    '/%2e%2e/health',
    '/health%00',
    '/health;a=1',
  ])
    globalErrorOf(t, await get(target), 404, target)
  globalErrorOf(t, await get(`/${'x'.repeat(8000)}`), 404, 'a very long URL')
  const parameter = await get(`/admin/users/${'x'.repeat(8000)}`)
  t.ok([401, 404, 405, 414].includes(parameter.statusCode), 'a very long parameter')
  errorsOf(t, parameter, parameter.statusCode, 'a very long parameter')
  const longest = await get(`/${'x'.repeat(100_000)}`)
  t.ok([414, 431].includes(longest.statusCode), 'a URL of 100 kB')
  globalErrorOf(t, longest, longest.statusCode, 'a URL of 100 kB')
})

t.test('every form of a request target is handled (RFC 9112 §3.2)', async t => {
  for (const target of [`http://127.0.0.1:${port}/health`, `HTTP://127.0.0.1:${port}/health`])
    t.equal((await ask(lines(`GET ${target} HTTP/1.1`, HOST, CLOSE))).statusCode, 200, target)
  const gated = await ask(lines(`GET http://127.0.0.1:${port}/account HTTP/1.1`, HOST, CLOSE))
  globalErrorOf(t, gated, 401, 'absolute-form, private')
  const asterisk = await ask(lines('OPTIONS * HTTP/1.1', HOST, CLOSE))
  if (asterisk.statusCode >= 400) globalErrorOf(t, asterisk, asterisk.statusCode, 'OPTIONS *')
  else t.ok([200, 204].includes(asterisk.statusCode), 'OPTIONS *')
  const authority = await ask(lines('CONNECT example.com:443 HTTP/1.1', 'Host: example.com:443', CLOSE))
  t.ok([400, 404, 405, 501].includes(authority.statusCode), 'CONNECT is refused')
  globalErrorOf(t, authority, authority.statusCode, 'CONNECT')
  if (authority.statusCode === 405) t.ok('allow' in authority.headers, 'a 405 names what is allowed')
})

t.test('unsupported methods are rejected (RFC 9110 §9.1)', async t => {
  const unknown = await ask(lines('BREW /health HTTP/1.1', HOST, CLOSE))
  t.ok([400, 405, 501].includes(unknown.statusCode), 'an unknown method is refused')
  globalErrorOf(t, unknown, unknown.statusCode, 'an unknown method')
  for (const method of ['TRACE', 'DELETE', 'PROPFIND', 'PURGE', 'OPTIONS']) {
    const response = await ask(lines(`${method} /health HTTP/1.1`, HOST, 'X-Secret: canary', CLOSE))
    globalErrorOf(t, response, 405, method)
    t.strictSame(response.headers.allow?.split(', ').sort(), ['GET', 'HEAD'], `${method}: Allow`)
    t.notMatch(response.raw, /canary/, `${method}: nothing is echoed`)
  }
})

t.test('Expect: 100-continue works, any other expectation is 417 (RFC 9110 §10.1.1)', async t => {
  const json = JSON.stringify({ email: 'nobody@example.com', password: 'not anybody at all' })
  const head = ['POST /account/sign-in HTTP/1.1', HOST, 'Content-Type: application/json', CLOSE]
  const length = `Content-Length: ${json.length}`
  const { raw } = await ask(lines(...head, length, 'Expect: 100-continue') + json, 5000)
  t.strictSame(statusesIn(raw), [100, 401])
  globalErrorOf(t, await ask(lines(...head, length, 'Expect: the-impossible') + json), 417)
  globalErrorOf(t, await ask(lines('GET /health HTTP/1.1', HOST, 'Expect: x', CLOSE)), 417)
  const gated = ['PUT /account HTTP/1.1', HOST, 'Content-Type: application/json', CLOSE]
  const rejected = await ask(lines(...gated, 'Content-Length: 99999999', 'Expect: 100-continue'))
  const final = parseResponse(rejected.raw.slice(rejected.raw.lastIndexOf('HTTP/1.1 ')))
  t.equal(final.status, 401, 'an unauthenticated client need not send the body')
})

t.test('protocol upgrades are ignored (RFC 9110 §7.8)', async t => {
  for (const protocol of ['websocket', 'h2c', 'TLS/1.2']) {
    const upgrade = ['Connection: Upgrade', `Upgrade: ${protocol}`, 'HTTP2-Settings: AAMAAABkAAQAAP__']
    const response = await ask(lines('GET /health HTTP/1.1', HOST, ...upgrade))
    t.equal(response.statusCode, 200, `${protocol}: ignored`)
    t.equal(JSON.parse(response.body).status, 'ok')
    globalErrorOf(t, await ask(lines('GET /account HTTP/1.1', HOST, ...upgrade)), 401, `${protocol}, private`)
  }
  const preface = await ask('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  globalErrorOf(t, preface, 505, 'an HTTP/2 preface')
})

t.test('pipelined requests get their responses in order (RFC 9112 §9.3.2)', async t => {
  const user = await signUp(app)
  const authorization = `Authorization: ${bearer(user.token).authorization}`
  const requests = [
    lines('GET /health HTTP/1.1', HOST),
    lines('GET /account HTTP/1.1', HOST, authorization),
    lines('GET /account HTTP/1.1', HOST),
    lines('GET /nope HTTP/1.1', HOST),
    lines('HEAD /account HTTP/1.1', HOST),
    lines('GET /users HTTP/1.1', HOST, authorization),
    lines('GET /admin/users HTTP/1.1', HOST, authorization),
    lines('GET /health HTTP/1.1', HOST, CLOSE),
  ]
  const { raw } = await ask(requests.join(''), 3000)
  t.strictSame(statusesIn(raw), [200, 200, 401, 404, 401, 200, 401, 200])
  t.equal(raw.split(user.email).length, 2, 'the account, once: no identity passes to the next request')
})

t.test('HEAD errors have no body on the wire (RFC 9110 §9.3.2)', async t => {
  for (const [target, status] of Object.entries({ '/nope': 404, '/account': 401, '/account/sign-in': 405 })) {
    const raw = await exchange(port, lines(`HEAD ${target} HTTP/1.1`, HOST) + healthy)
    t.strictSame(statusesIn(raw), [status, 200], target)
    t.equal(
      parseResponse(raw).body.indexOf('HTTP/1.1 200'),
      0,
      `${target}: the next response follows at once`,
    )
  }
})

t.test('errors outside Fastify are logged once too (§7.2)', async t => {
  const requests = {
    417: lines('GET /health HTTP/1.1', HOST, 'Expect: x', CLOSE),
    400: lines('GET /health HTTP/1.1', CLOSE),
    404: lines('GET /nope HTTP/1.1', HOST, CLOSE),
  }
  for (const [status, request] of Object.entries(requests)) {
    const before = log.records().length
    t.equal((await ask(request)).statusCode, Number(status))
    const records = log
      .records()
      .slice(before)
      .filter(({ reqId }) => reqId !== undefined)
    t.match(records, [{ status: Number(status), method: 'GET' }], `${status}: one line`)
  }
})

t.test('a client that disconnects or resets affects no other client', async t => {
  const partial = `${lines('POST /account/sign-in HTTP/1.1', HOST, 'Content-Type: application/json', 'Content-Length: 50')}{"em`
  await Promise.all(Array.from({ length: 20 }, () => exchange(port, partial, 1)))
  await stillServes(t)
})
