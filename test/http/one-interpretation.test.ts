/** A connection has one interpretation: ambiguous or malformed HTTP is rejected, and what follows is not affected. */
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { ADMIN_KEY, bearer, build, signUp } from '../support/build.ts'
import { errorsOf, type HttpResponse } from '../support/error-response.ts'
import { lines, RawConnection } from '../support/raw-http.ts'
import { liveRoutes } from '../support/routes.ts'

const app = await build(t)
await app.listen({ port: 0, host: '127.0.0.1' })
const { port } = app.server.address() as AddressInfo

const HOST = `Host: 127.0.0.1:${port}`
const GET = ['GET /health HTTP/1.1', HOST]
const POST = ['POST /account/sign-in HTTP/1.1', HOST, 'Content-Type: application/json']
const ACCOUNT = ['GET /account HTTP/1.1', HOST]
const ADMIN = ['GET /admin/users HTTP/1.1', HOST]
const CHUNKED = 'Transfer-Encoding: chunked'
const NEXT = lines('GET /ready HTTP/1.1', HOST)
const LAST = lines('GET /health HTTP/1.1', HOST, 'Connection: close')

/** The expected response; with `stays`, also for the request behind it in the same segment, and one more afterwards. */
type Row = readonly [title: string, request: string, status: number, then?: 'stays' | 'closes']

const withHost = (host: string): string => lines('GET /health HTTP/1.1', `Host: ${host}`)
const withBody = (body: string, ...fields: string[]): string =>
  lines(...POST, ...fields, `Content-Length: ${Buffer.byteLength(body)}`) + body
/** With the admin key, which one of the routes needs. */
const withType = (path: string, type: string): string =>
  `${lines(`POST ${path} HTTP/1.1`, HOST, `X-Admin-Key: ${ADMIN_KEY}`, `Content-Type: ${type}`, 'Content-Length: 2')}{}`
const withLength = (...lengths: string[]): string =>
  `${lines(...POST, ...lengths.map(length => `Content-Length: ${length}`))}{"a":`
const withCoding = (coding: string): string => `${lines(...POST, `Transfer-Encoding: ${coding}`)}0\r\n\r\n`
const inVersion = (version: string): string => lines(`GET /health ${version}`, HOST)

const ROWS: Record<string, readonly Row[]> = {
  'versions other than 1.0 and 1.1 (RFC 9110 §15.6.6)': [
    ['HTTP/2.0', inVersion('HTTP/2.0'), 505],
    ['HTTP/2.0, kept alive', lines('GET /health HTTP/2.0', HOST, 'Connection: keep-alive'), 505],
    ['HTTP/0.9', inVersion('HTTP/0.9'), 505],
    ['HTTP/1.2', inVersion('HTTP/1.2'), 505],
    ['HTTP/3.0', inVersion('HTTP/3.0'), 505],
    ['HTTP/9.9', inVersion('HTTP/9.9'), 505],
    ['a simple request', 'GET /health\r\n\r\n', 505],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505],
    ['HTTP/1', inVersion('HTTP/1'), 400],
    ['HTTP/1.10', inVersion('HTTP/1.10'), 400],
    ['HTTP/x.1', inVersion('HTTP/x.1'), 400],
    ['http/1.1', inVersion('http/1.1'), 400],
  ],
  'transfer codings other than chunked (RFC 9112 §6.1)': [
    ['gzip, chunked', withCoding('gzip, chunked'), 501],
    ['in two fields', `${lines(...POST, 'Transfer-Encoding: gzip', CHUNKED)}0\r\n\r\n`, 501],
    ['identity', withCoding('identity'), 501],
    ['chunked, chunked', withCoding('chunked, chunked'), 501],
    ['chunked twice', `${lines(...POST, CHUNKED, CHUNKED)}0\r\n\r\n`, 501],
    ['chunked, gzip', withCoding('chunked, gzip'), 501],
    ['xchunked', withCoding('xchunked'), 501],
    ['chunked with a parameter', withCoding('chunked;q=1'), 501],
    ['none', withCoding(''), 400],
    ['of a GET', lines(...GET, 'Transfer-Encoding: gzip'), 501],
    ['on HTTP/1.0', `${lines('POST /account/sign-in HTTP/1.0', HOST, CHUNKED)}0\r\n\r\n`, 400],
    [
      'on HTTP/1.0, kept alive',
      `${lines('POST /account/sign-in HTTP/1.0', HOST, 'Connection: keep-alive', CHUNKED)}0\r\n\r\n`,
      400,
    ],
    ['with a length', `${lines(...POST, CHUNKED, 'Content-Length: 5')}0\r\n\r\n`, 400],
    ['after a length', `${lines(...POST, 'Content-Length: 5', CHUNKED)}0\r\n\r\n`, 400],
    ['CHUNKED', withCoding('CHUNKED'), 400, 'stays'],
  ],
  'lengths (RFC 9112 §6.3)': [
    ['with a sign', withLength('+5'), 400],
    ['a list', withLength('5, 5'), 400],
    ['twice the same', withLength('5', '5'), 400],
    ['two different', withLength('5', '6'), 400],
    ['negative', withLength('-5'), 400],
    ['hexadecimal', withLength('0x5'), 400],
    ['empty', withLength(''), 400],
    ['beyond 64 bits', withLength('99999999999999999999'), 400],
    ['right', withLength('5'), 400, 'stays'],
  ],
  'chunks (RFC 9112 §7.1)': [
    ['no size', `${lines(...POST, CHUNKED)}zz\r\n`, 400],
    ['a size beyond 64 bits', `${lines(...POST, CHUNKED)}${'f'.repeat(17)}\r\nx\r\n0\r\n\r\n`, 400],
    ['a size below zero', `${lines(...POST, CHUNKED)}-1\r\nx\r\n0\r\n\r\n`, 400],
    ['long extensions', `${lines(...POST, CHUNKED)}1;${'x'.repeat(20_000)}\r\nx\r\n0\r\n\r\n`, 413],
    ['a bare LF', `${lines(...POST, CHUNKED)}1\nx\r\n0\r\n\r\n`, 400],
    ['more than the size', `${lines(...POST, CHUNKED)}1\r\n{}\r\n0\r\n\r\n`, 400],
    ['a Host in the trailer', `${lines(...POST, CHUNKED)}2\r\n{}\r\n0\r\nHost: x\r\n\r\n`, 400, 'stays'],
  ],
  'lines and fields (RFC 9112 §2.2, §5)': [
    ['bare LFs', `GET /health HTTP/1.1\n${HOST}\n\n`, 400],
    ['a bare LF behind a field', `GET /health HTTP/1.1\r\n${HOST}\nX-A: 1\r\n\r\n`, 400],
    ['a bare LF at the end', `GET /health HTTP/1.1\r\n${HOST}\r\n\n`, 400],
    ['a bare CR', `GET /health HTTP/1.1\r\n${HOST}\r\nX-A: a\rX-B: b\r\n\r\n`, 400],
    ['a folded field', lines(...GET, 'X-A: a', ' b'), 400],
    ['a blank before the first field', lines('GET /health HTTP/1.1', ` ${HOST}`), 400],
    ['a blank before the colon', lines('GET /health HTTP/1.1', HOST.replace(':', ' :')), 400],
    ['NUL in a value', lines(...GET, 'X-A: a\0b'), 400],
    ['NUL in a name', lines(...GET, 'X\0A: b'), 400],
    ['a control character', lines(...GET, 'X-A: a\x01b'), 400],
    ['no name', lines(...GET, ': b'), 400],
    ['a long field', lines(...GET, `X-A: ${'x'.repeat(20_000)}`), 431],
    ['a long request line', lines(`GET /${'x'.repeat(100_000)} HTTP/1.1`, HOST), 431],
    ['too many fields', lines(...GET, ...Array.from({ length: 1_100 }, () => 'A: 1')), 431, 'stays'],
    ['an empty line before', `\r\n${lines(...GET)}`, 200, 'stays'],
  ],
  'targets (RFC 9112 §3.2)': [
    ['* of a GET', lines('GET * HTTP/1.1', HOST), 404, 'stays'],
    ['authority-form of a GET', lines('GET a:80 HTTP/1.1', HOST), 400],
    ['CONNECT', lines('CONNECT a:80 HTTP/1.1', HOST), 400],
    ['CONNECT of a path', lines('CONNECT /health HTTP/1.1', HOST), 400],
    ['no target', lines('GET  HTTP/1.1', HOST), 400],
    ['a blank', lines('GET /he alth HTTP/1.1', HOST), 400],
    ['percent-encoding that is none', lines('GET /%zz HTTP/1.1', HOST), 400],
    ['a byte beyond ASCII', lines('GET /users?search=\u00e9 HTTP/1.1', HOST), 400],
    ['a path that is no UTF-8', lines('GET /admin/users/%FF HTTP/1.1', HOST), 400],
    ['an authority with a user', lines('GET http://user@a/health HTTP/1.1', HOST), 400, 'stays'],
    ['an authority with markup', lines('GET http://<script>/health HTTP/1.1', HOST), 400],
    ['an authority with a port that is none', lines('GET http://a:99999/health HTTP/1.1', HOST), 400],
    ['an authority with a label that is none', lines('GET http://a..b/health HTTP/1.1', HOST), 400, 'stays'],
    ['no authority', lines('GET http:///health HTTP/1.1', HOST), 400],
    ['absolute-form', lines(`GET http://127.0.0.1:${port}/health HTTP/1.1`, HOST), 200, 'stays'],
    ['absolute-form of another host', lines('GET http://[::1]:3000/health HTTP/1.1', HOST), 200, 'stays'],
  ],
  'Host (RFC 9112 §3.2)': [
    ...[
      '<script>',
      'a b',
      'user@host',
      'host:99999',
      'host:abc',
      'host:-1',
      '[::1',
      '::1',
      '[::1%25lo]',
      '[]',
    ],
    ...['', 'a/b', 'a,b', 'a%41', 'a..b', '.', '-', ':80', 'h\u00f6st', `${'a'.repeat(10)}:1:1`],
  ].map((host): Row => [JSON.stringify(host), withHost(host), 400, 'stays']),
  'a Host that is fine': [
    ...['localhost', 'LOCALHOST', 'a.example', 'a.example.', 'my_service.internal', 'a-b.example:8080', 'a:'],
    ...[
      '127.0.0.1',
      '127.0.0.1:3000',
      '[::1]',
      '[::1]:3000',
      '[::ffff:127.0.0.1]:80',
      'xn--bcher-kva.example',
    ],
    ...['a:0', 'a:65535', '3000', 'a.example'],
  ].map((host): Row => [JSON.stringify(host), withHost(host), 200, 'stays']),
  'fields that are given once': [
    ['two Hosts', lines(...GET, HOST), 400, 'stays'],
    ['no Host', lines('GET /health HTTP/1.1'), 400, 'stays'],
    ['two authorizations', lines(...GET, 'Authorization: Bearer a', 'authorization: Bearer a'), 400, 'stays'],
    ['two admin keys', lines(...GET, `X-Admin-Key: ${ADMIN_KEY}`, 'x-admin-key: b'), 400, 'stays'],
    ['one of each', lines(...GET, 'Authorization: Bearer a', 'X-Admin-Key: b'), 200, 'stays'],
  ],
  'S9: an Authorization of any form is a missing or a wrong token': [
    ...['\x01', '\x08', '\x0b', '\x1f', '\x7f', '\0'].map(
      (byte): Row => [JSON.stringify(byte), lines(...ACCOUNT, `Authorization: Bearer a${byte}b`), 400],
    ),
    ...[
      ...[
        'Bearer',
        'bearer',
        'Bearera',
        'Bearer   a',
        'bearer\ta',
        'Bearer a b',
        'Bearer a,Bearer b',
        '',
        '=',
      ],
      ...[
        'Bearer \x80\xff',
        '\xff a',
        'Bearer ..',
        'Bearer e30.e30.e30',
        'Negotiate',
        `Bearer ${'a'.repeat(8_000)}`,
      ],
    ].map((value): Row => [value.slice(0, 30), lines(...ACCOUNT, `Authorization: ${value}`), 401, 'stays']),
    ['16 kB', lines(...ACCOUNT, `Authorization: Bearer ${'a'.repeat(16_384)}`), 431],
    ['16 kB without a scheme', lines(...ACCOUNT, `Authorization: ${'a'.repeat(16_384)}`), 431],
  ],
  'R6: a media type of another spelling is no JSON, no form and no NDJSON (RFC 9110 §8.3)': [
    ...['\ta', ' x', ' ,text/plain', ', application/json', '+x', 'x', '/json', '=a'].flatMap(
      (rest): Row[] => {
        // Another type that is valid: the routes of forms and NDJSON do not read its body.
        const then = /^\+?x$/.test(rest) ? 'closes' : 'stays'
        return [
          [`JSON${rest}`, withType('/account/sign-in', `application/json${rest}`), 415, 'stays'],
          [
            `form${rest}`,
            withType('/admin/introspect', `application/x-www-form-urlencoded${rest}`),
            415,
            then,
          ],
          [`NDJSON${rest}`, withType('/admin/users/import', `application/x-ndjson${rest}`), 415, then],
        ]
      },
    ),
    ['JSON', withType('/account/sign-in', 'application/json'), 400, 'stays'],
    ['a form', withType('/admin/introspect', 'application/x-www-form-urlencoded'), 400, 'stays'],
  ],
  'R7: only the field itself, once and on one line, has an admin key': [
    ...['X_Admin_Key', 'X-Admin_Key', 'X_ADMIN-KEY', 'X.Admin.Key', 'HTTP_X_ADMIN_KEY', 'X-Admin-Key-'].map(
      (name): Row => [name, lines(...ADMIN, `${name}: ${ADMIN_KEY}`), 401, 'stays'],
    ),
    ['twice', lines(...ADMIN, `X-Admin-Key: ${ADMIN_KEY}`, `X-Admin-Key: ${ADMIN_KEY}`), 400, 'stays'],
    ['beside another spelling', lines(...ADMIN, 'X-Admin-Key: x', `X_Admin_Key: ${ADMIN_KEY}`), 401, 'stays'],
    ['folded', lines(...ADMIN, 'X-Admin-Key:', ` ${ADMIN_KEY}`), 400],
    ['folded behind another field', lines(...ADMIN, 'X-A: a', ` X-Admin-Key: ${ADMIN_KEY}`), 400],
    [
      'in the trailer',
      `${lines(...POST, CHUNKED)}2\r\n{}\r\n0\r\nX-Admin-Key: ${ADMIN_KEY}\r\n\r\n`,
      400,
      'stays',
    ],
    ['right', lines(...ADMIN, `X-Admin-Key: ${ADMIN_KEY}`), 200, 'stays'],
  ],
  'expectations (RFC 9110 §10.1.1)': [
    ['unknown', lines(...GET, 'Expect: x'), 417, 'stays'],
    ['with a body', withBody('{}', 'Expect: x'), 417, 'stays'],
    ['two', lines(...GET, 'Expect: 100-continue, x'), 417, 'stays'],
    ['known', withBody('{}', 'Expect: 100-continue'), 400, 'stays'],
  ],
  'protocol changes (RFC 9110 §7.8)': [
    ['websocket', lines(...GET, 'Connection: Upgrade', 'Upgrade: websocket'), 200, 'closes'],
    ['h2c', lines(...GET, 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: '), 200],
    ['with a body', withBody('{}', 'Connection: Upgrade', 'Upgrade: h2c'), 400],
    ['chunked', `${lines(...POST, CHUNKED, 'Connection: Upgrade', 'Upgrade: h2c')}0\r\n\r\n`, 400],
    ['without its connection option', lines(...GET, 'Upgrade: h2c'), 200],
  ],
  'what the client ends itself (RFC 9112 §9.6)': [
    ['Connection: close', LAST, 200],
    ['HTTP/1.0', lines('GET /health HTTP/1.0', HOST), 200],
  ],
  'bodies in other encodings (RFC 9110 §15.5.16)': [
    ['gzip', withBody('{}', 'Content-Encoding: gzip'), 415, 'stays'],
    ['identity, gzip', withBody('{}', 'Content-Encoding: identity, gzip'), 415, 'stays'],
    ['identity', withBody('{}', 'Content-Encoding: Identity'), 400, 'stays'],
    ['of no body', lines(...POST, 'Content-Encoding: gzip', 'Content-Length: 0'), 400, 'stays'],
  ],
}

const statuses = (responses: readonly HttpResponse[]): number[] =>
  responses.map(({ statusCode }) => statusCode)

for (const [title, rows] of Object.entries(ROWS)) {
  t.test(/^[RS]\d/.test(title) ? title : `one interpretation: ${title}`, async t => {
    for (const [name, request, status, then = 'closes'] of rows) {
      // latin1: one character is one byte.
      const connection = new RawConnection(port).write(Buffer.from(request + NEXT, 'latin1'))
      if (then === 'stays') {
        await connection.untilResponses(2)
        connection.write(LAST)
      }
      const responses = await connection.untilClosed()
      t.strictSame(statuses(responses), then === 'stays' ? [status, 200, 200] : [status], `${name}: ${then}`)
      const [first] = responses
      if (first === undefined) continue
      if (status >= 400) errorsOf(t, first, status, name)
      t.equal(first.headers['x-content-type-options'], 'nosniff', `${name}: nosniff`)
      t.equal(first.headers.connection === 'close', then === 'closes', `${name}: says whether it closes`)
    }
  })
}

t.test(
  'duplicate headers identify no user on a private route, D4: nor do cookies of different users (§5.1.1)',
  async t => {
    const [ada, bob] = [await signUp(app), await signUp(app)]
    const account = async (...fields: string[]): Promise<HttpResponse | undefined> =>
      (
        await new RawConnection(port)
          .write(lines('GET /account HTTP/1.1', HOST, 'Connection: close', ...fields))
          .untilClosed()
      )[0]
    const authorization = (token: string): string => `Authorization: ${bearer(token).authorization}`
    for (const [first, second] of [
      [ada.token, bob.token],
      [ada.token, ada.token],
    ] as const) {
      const rejected = await account(authorization(first), authorization(second))
      errorsOf(t, rejected as HttpResponse, 400)
    }
    const own = async (...fields: string[]): Promise<unknown> =>
      JSON.parse((await account(...fields))?.body ?? '').id
    const [adas, bobs] = [`ACCESS_TOKEN=${ada.token}`, `ACCESS_TOKEN=${bob.token}`]
    for (const fields of [
      [`Cookie: ${adas}; ${bobs}`],
      [`Cookie: ${bobs}; ${adas}`],
      [`Cookie: ${adas}`, `Cookie: ${bobs}`],
    ])
      t.equal((await account(...fields))?.statusCode, 401)
    t.equal(await own('Cookie: ACCESS_TOKEN=bad', `Cookie: ${adas}`), ada.id, 'in fields of their own')
  },
)

/** Other spellings of a path below a gate, which some proxies take for it and others for another one. */
const SPELLINGS: readonly ((path: string) => string)[] = [
  path => `/${path}`,
  path => `//127.0.0.1${path}`,
  path => `${path}/`,
  path => `${path}//`,
  path => `${path}/.`,
  path => `/.${path}`,
  path => `/health/..${path}`,
  path => `/public/..${path}`,
  path => `/%2e%2e${path}`,
  path => `/health/%2e%2e${path}`,
  path => `/health/..;${path}`,
  path => `/health%2F..${path}`,
  path => `/%2F${path.slice(1)}`,
  path => `/%5C${path.slice(1)}`,
  path => `/\\${path.slice(1)}`,
  path => path.replace(/(?!^)\//, '%2F'),
  path => path.replace(/(?!^)\//, '//'),
  path => `${path};x=/health`,
  path => `${path}%00`,
  path => `${path}%20`,
  path => `${path}%3F`,
  path => `${path}.json`,
  path => path.toUpperCase(),
  path => path.replace(/^\/./, start => start.toUpperCase()),
  path => `/health${path}`,
]

/** Of these the first is the path itself (RFC 3986 §6.2.2.2, RFC 9112 §3.2.2). */
const EQUIVALENTS: readonly ((path: string) => string)[] = [
  path => path.replace('a', '%61'),
  path => `http://127.0.0.1${path}`,
  path => `http://elsewhere.example${path}`,
]

t.test('R5: no spelling of a path avoids its gate; only an equivalent one finds its route', async t => {
  const { id, token } = await signUp(app)
  const right = { user: `Authorization: Bearer ${token}`, adminKey: `X-Admin-Key: ${ADMIN_KEY}` }
  const gated = liveRoutes(app).filter(({ gate, method }) => gate !== undefined && method !== 'HEAD')
  for (const { method, url, gate } of gated) {
    const path = url.replace(/:\w+/g, id)
    const spelled = (spellings: typeof SPELLINGS, ...fields: string[]): string[] =>
      spellings
        .map(spell => spell(path))
        .filter(target => target !== path)
        .map(target => lines(`${method} ${target} HTTP/1.1`, HOST, ...fields, 'Content-Length: 0'))
    /** The requests whose response has none of the statuses. */
    const othersThan = async (
      expected: readonly number[],
      requests: readonly string[],
    ): Promise<string[]> => {
      const responses = await new RawConnection(port).write(requests.join('') + LAST).untilClosed()
      return requests.filter((_, index) => !expected.includes(responses[index]?.statusCode ?? 0))
    }
    const requests = [...SPELLINGS, ...EQUIVALENTS]
    const without = [
      ...spelled(requests),
      ...spelled(requests, gate === 'user' ? right.adminKey : right.user),
    ]
    t.strictSame(
      await othersThan([400, 401, 404, 405], without),
      [],
      `${method} ${url}, no credentials of it`,
    )
    const others = method === 'GET' ? spelled(SPELLINGS, right.user, right.adminKey) : []
    t.strictSame(await othersThan([400, 404, 405], others), [], `${method} ${url} has no other spelling`)
  }
})
