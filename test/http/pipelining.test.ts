/** A complete request gets its own response in order, whatever follows it (RFC 9112 §9.3.2; docs/design.md, "Errors"). */
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { bearer, build, logCapture, PASSWORD, type SignedUp, signUp } from '../support/build.ts'
import { globalErrorOf, type HttpResponse } from '../support/error-response.ts'
import { HeldHashing } from '../support/fake-hashing.ts'
import { lines, RawConnection, withJson } from '../support/raw-http.ts'
import { until } from '../support/until.ts'

const LIMIT = 20_000
const GARBAGE = 'no HTTP at all\r\n\r\n'

const log = logCapture()
const hasher = new HeldHashing()
const app = await build(t, { hasher, logStream: log.stream, env: { LOG_LEVEL: 'debug' } })
await app.listen({ port: 0, host: '127.0.0.1' })
const portOf = ({ server }: FastifyInstance): number => (server.address() as AddressInfo).port
const port = portOf(app)

const HOST = `Host: 127.0.0.1:${port}`

const withBody = (line: string, body: unknown, ...fields: string[]): string =>
  withJson([`${line} HTTP/1.1`, HOST, ...fields], body)

const authorization = ({ token }: SignedUp): string => `Authorization: ${bearer(token).authorization}`
const named = (user: SignedUp, firstName: string): string =>
  withBody('PUT /account', { firstName }, authorization(user))
const signingIn = ({ email }: SignedUp, ...fields: string[]): string =>
  withBody('POST /account/sign-in', { email, password: PASSWORD }, ...fields)
const health = lines('GET /health HTTP/1.1', HOST)

const firstNameOf = async (user: SignedUp): Promise<string> =>
  (await app.inject({ url: '/account', headers: bearer(user.token) })).json().firstName

const newUser = async (): Promise<SignedUp> => {
  hasher.release()
  const user = await signUp(app)
  hasher.hold()
  hasher.begun.length = 0
  return user
}

/** A connection whose sign-in waits for its hash, with more bytes in the same segment. */
const waiting = async (user: SignedUp, behind = '', ...fields: string[]): Promise<RawConnection> => {
  const connection = new RawConnection(port).write(signingIn(user, ...fields) + behind)
  await until(
    () => hasher.begun.length,
    count => count === 1,
    LIMIT,
  )
  return connection
}

const released = (connection: RawConnection): Promise<HttpResponse[]> => {
  hasher.release()
  return connection.untilClosed()
}

const connectionError = (code: string) =>
  until(
    () => log.records().some(record => record.code === code),
    is => is,
    LIMIT,
  )

const statuses = (responses: readonly HttpResponse[]): number[] =>
  responses.map(({ statusCode }) => statusCode)

t.test('a processed change gets its response before a parser error', async t => {
  for (const [line, status, body] of [
    ['PUT /account', 200, { firstName: 'Ann' }],
    ['POST /account/sign-out', 204, {}],
    ['DELETE /account/sessions?scope=all', 204, {}],
    ['POST /account/verify-email/resend', 202, {}],
    ['GET /account', 200, {}],
    ['GET /nope', 404, {}],
  ] as const) {
    const user = await newUser()
    const responses = await new RawConnection(port)
      .write(withBody(line, body, authorization(user)) + GARBAGE)
      .untilClosed()
    t.strictSame(statuses(responses), [status, 400], line)
    globalErrorOf(t, responses[1] as HttpResponse, 400, line)
    t.equal(responses[1]?.headers.connection, 'close')
  }
})

t.test(
  'slow changes get their responses too, with other requests and repeated garbage behind them',
  async t => {
    const user = await newUser()
    const alone = await waiting(user, GARBAGE)
    for (let time = 0; time < 5; time += 1) alone.write(GARBAGE)
    t.equal(alone.received, '')
    t.strictSame(statuses(await released(alone)), [200, 400])

    const first = await newUser()
    const behind = [
      health,
      named(first, 'Bea'),
      lines('HEAD /nope HTTP/1.1', HOST),
      lines('GET /account HTTP/1.1', HOST),
    ]
    const several = await waiting(first, behind.slice(0, 2).join('') + behind[3] + GARBAGE)
    t.strictSame(statuses(await released(several)), [200, 200, 200, 401, 400])
    t.equal(await firstNameOf(first), 'Bea')
  },
)

t.test('a body error comes after earlier responses', async t => {
  const user = await newUser()
  const chunked = lines(
    'POST /account/sign-in HTTP/1.1',
    HOST,
    'Content-Type: application/json',
    'Transfer-Encoding: chunked',
  )
  t.strictSame(statuses(await released(await waiting(user, `${chunked}zz\r\n`))), [200, 400])
  const early = lines('POST /nope HTTP/1.1', HOST, 'Transfer-Encoding: chunked')
  const other = await newUser()
  t.strictSame(
    statuses(await released(await waiting(other, `${early}zz\r\n`))),
    [200, 404],
    'one response each',
  )
})

t.test('a client that half-closes gets its responses', async t => {
  const user = await newUser()
  t.strictSame(
    statuses(await new RawConnection(port).write(named(user, 'Cleo')).halfClose().untilClosed()),
    [200],
  )
  t.equal(await firstNameOf(user), 'Cleo')
  const garbage = new RawConnection(port).write(named(user, 'Dora') + GARBAGE).halfClose()
  t.strictSame(statuses(await garbage.untilClosed()), [200, 400])
  const cut = new RawConnection(port).write(named(user, 'Eva') + health + health.slice(0, 20)).halfClose()
  t.strictSame(statuses(await cut.untilClosed()), [200, 200, 400])
  t.strictSame(statuses(await released((await waiting(user, health)).halfClose())), [200, 200])
  const again = await newUser()
  const signIn = new RawConnection(port).write(signingIn(again)).halfClose()
  t.strictSame(statuses(await released(signIn)), [200], 'in one segment with its end')
})

t.test('a late request gets 408 after earlier responses', { jobs: 2 }, async t => {
  const user = await newUser()
  const connection = await waiting(user, named(user, 'Faye') + named(user, 'Gail').slice(0, 30))
  t.ok(await connectionError('ERR_HTTP_REQUEST_TIMEOUT'))
  connection.write(named(user, 'Gail').slice(30))
  const responses = await released(connection)
  t.strictSame(statuses(responses), [200, 200, 408])
  globalErrorOf(t, responses[2] as HttpResponse, 408)
  t.equal(await firstNameOf(user), 'Faye', 'and not processed when the rest comes after all')
})

/** A connection whose first response is delayed, and whose second request has timed out. */
const late = async (...args: Parameters<typeof waiting>) => {
  const connection = await waiting(...args)
  const before = log.records().length
  const isNotified = () =>
    log
      .records()
      .slice(before)
      .some(({ code }) => code === 'ERR_HTTP_REQUEST_TIMEOUT')
  await until(isNotified, is => is, LIMIT)
  return connection
}

t.test('a late body gets 408 after earlier responses', async t => {
  const user = await newUser()
  const connection = await late(user, named(user, 'Hope').slice(0, -5))
  t.strictSame(statuses(await released(connection)), [200, 408])
  t.not(await firstNameOf(user), 'Hope')
})

t.test('a late body that completes while it waits gets 408 too', async t => {
  const user = await newUser()
  const connection = await late(user, named(user, 'Ines').slice(0, -1))
  connection.write('}')
  t.strictSame(statuses(await released(connection)), [200, 408], 'one response for each')
  t.not(await firstNameOf(user), 'Ines', 'and it is not processed')
})

t.test('a request with Upgrade is the last of its connection (RFC 9110 §7.8)', async t => {
  const upgrade = ['Connection: Upgrade', 'Upgrade: h2c']
  const user = await newUser()
  const all = named(user, 'Ida')
  for (const [title, segments] of Object.entries({
    'in the same segment': [all],
    'in another segment': ['', all],
    'in both': [all.slice(0, 40), all.slice(40)],
    'that is none': [GARBAGE, GARBAGE],
  })) {
    const connection = await waiting(user, segments[0], ...upgrade)
    connection.write(`${segments[1] ?? ''}\r\n${all}`)
    const responses = await released(connection)
    t.strictSame(statuses(responses), [200], `what is behind it ${title} is nothing`)
    t.equal(responses[0]?.headers.connection, 'close')
    t.equal(await firstNameOf(user), null, title)
    hasher.hold()
    hasher.begun.length = 0
  }
})

t.test('nothing is processed after the last response of a connection (RFC 9112 §9.6)', async t => {
  const user = await newUser()
  const rest = named(user, 'Joan')
  for (const [title, request, status] of [
    ['a URL that is none', lines('GET /%zz HTTP/1.1', HOST), 400],
    [
      'a transfer coding',
      `${lines('POST /nope HTTP/1.1', HOST, 'Transfer-Encoding: gzip, chunked')}0\r\n\r\n`,
      501,
    ],
    ['Connection: close', lines('GET /health HTTP/1.1', HOST, 'Connection: close'), 200],
    [
      'a body that is too long',
      lines('PUT /account HTTP/1.1', HOST, authorization(user), 'Content-Length: 20000') + ' '.repeat(20_000),
      415,
    ],
  ] as const) {
    const responses = await new RawConnection(port).write(request + rest).untilClosed()
    t.equal(responses[0]?.statusCode, status, title)
    t.equal(
      await firstNameOf(user),
      responses.length === 1 ? null : 'Joan',
      `${title}: what is processed has its response`,
    )
  }
})

t.test('CONNECT comes after earlier responses', async t => {
  const user = await newUser()
  const connect = lines('CONNECT a.example:443 HTTP/1.1', 'Host: a.example:443')
  t.strictSame(statuses(await released(await waiting(user, health + connect + GARBAGE))), [200, 200, 400])
})

t.test('during a stop all pipelined requests get their responses', async t => {
  const held = new HeldHashing()
  const stopping = await build(t, { hasher: held })
  await stopping.listen({ port: 0, host: '127.0.0.1' })
  held.release()
  const user = await signUp(stopping)
  held.hold()
  held.begun.length = 0
  const connection = new RawConnection(portOf(stopping)).write(health + signingIn(user) + signingIn(user))
  await until(
    () => held.begun.length,
    count => count === 1,
    LIMIT,
  )
  await stopping.drain()
  held.release()
  const responses = await connection.untilClosed()
  t.strictSame(statuses(responses), [200, 200, 200])
  t.strictSame(
    responses.map(({ headers }) => headers.connection),
    ['keep-alive', 'keep-alive', 'close'],
    'the last one tells that the connection ends',
  )
})
