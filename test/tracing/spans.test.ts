/** Spans of requests and of operations of the store, as a collector receives them (docs/design.md, "Observability"). */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { ADMIN_KEY, bearer, freshEmail, PASSWORD } from '../support/build.ts'
import { CLIENT, type ReceivedSpan, SERVER, startCollector } from '../support/collector.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { exchange, type Running, startServer } from '../support/process.ts'
import { until } from '../support/until.ts'

/** Milliseconds until spans or lines that do not arrive count as missing. */
const DEADLINE = 20_000

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const SPAN_ID = 'b7ad6b7169203331'
const TRACEPARENT = `00-${TRACE_ID}-${SPAN_ID}-01`

const signUp = async (server: Running, email = freshEmail(), headers = {}) => {
  const response = await fetch(`${server.url}/account/sign-up`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ email, password: PASSWORD, firstName: 'Grace' }),
  })
  const { accessToken, user } = (await response.json()) as { accessToken: string; user: { id: string } }
  return { status: response.status, token: accessToken, id: user.id }
}

const send = async (server: Running, path: string, init: RequestInit = {}): Promise<number> => {
  const response = await fetch(server.url + path, { redirect: 'manual', ...init })
  await response.arrayBuffer()
  return response.status
}

const childrenOf = (spans: readonly ReceivedSpan[], { spanId }: ReceivedSpan): ReceivedSpan[] =>
  spans.filter(({ parentSpanId }) => parentSpanId === spanId)

const SYSTEMS: Readonly<Record<string, string>> = { sqlite: 'sqlite', postgres: 'postgresql' }

await onEnginesOfRun(t, async (t, { name: engine, newDatabase }) => {
  const collector = await startCollector(t)
  const env = { DATABASE_URL: await newDatabase(t), ...collector.env }
  const server = await startServer(t, { env })

  /** Waits until all spans so far have arrived: they are sent before that of this request, or with it. */
  const settle = async (): Promise<void> => {
    const count = () => collector.spans().filter(({ name }) => name === 'GET /health').length
    const before = count()
    t.equal(await send(server, '/health'), 200)
    await until(count, now => now > before, DEADLINE)
  }

  /** The spans of these requests. */
  const spansOf = async (requests: () => Promise<void>): Promise<readonly ReceivedSpan[]> => {
    await settle()
    const before = collector.spans().length
    await requests()
    await settle()
    return collector
      .spans()
      .slice(before)
      .filter(({ name }) => name !== 'GET /health')
  }

  const named = (spans: readonly ReceivedSpan[], wanted: string): ReceivedSpan => {
    const found = spans.find(({ name }) => name === wanted)
    if (found === undefined) throw new Error(`no span ${wanted}, but ${spans.map(({ name }) => name)}`)
    return found
  }

  t.test('a request continues the trace of its client, and its writes are children of it', async t => {
    const spans = await spansOf(async () => {
      const { status } = await signUp(server, freshEmail(), { traceparent: TRACEPARENT })
      t.equal(status, 201)
    })
    const request = named(spans, 'POST /account/sign-up')
    t.match(request, { traceId: TRACE_ID, parentSpanId: SPAN_ID, kind: SERVER })
    t.same(request.attributes, {
      'http.request.method': 'POST',
      'http.route': '/account/sign-up',
      'http.response.status_code': 201,
      'url.scheme': 'http',
    })
    t.match(request.resource, { 'service.name': 'gatehouse', 'service.version': /^\d/ })
    const operations = childrenOf(spans, request)
    const write = operations.find(({ name }) => name === 'accounts.addUser')
    t.match(write, { traceId: TRACE_ID, kind: CLIENT, status: {} })
    t.same(write?.attributes, {
      'db.system.name': SYSTEMS[engine],
      'db.operation.name': 'accounts.addUser',
    })
  })

  t.test('operations after a body that arrives later are children of the request', async t => {
    const body = JSON.stringify({ email: freshEmail(), password: PASSWORD })
    const spans = await spansOf(async () => {
      const socket = connect(server.port, '127.0.0.1')
      socket.setEncoding('utf8')
      socket.write(
        `POST /account/sign-up HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
          'Expect: 100-continue\r\nConnection: close\r\n\r\n',
      )
      const [interim] = await once(socket, 'data')
      t.match(interim, 'HTTP/1.1 100 Continue')
      socket.write(body)
      const [response] = await once(socket, 'data')
      t.match(response, 'HTTP/1.1 201')
      socket.destroy()
    })
    const operations = childrenOf(spans, named(spans, 'POST /account/sign-up')).map(({ name }) => name)
    t.ok(operations.includes('accounts.addUser'), String(operations))
  })

  t.test('a request from memory has a span without children, one that reads has a child', async t => {
    const spans = await spansOf(async () => {
      const { token, id } = await signUp(server)
      t.equal(await send(server, '/account', { headers: bearer(token) }), 200)
      t.equal(await send(server, '/account', { headers: bearer(token) }), 200)
      await send(server, `/users/${id}`, { headers: bearer(token) })
      await send(server, '/admin/users?email=ada%40example.com', { headers: { 'x-admin-key': ADMIN_KEY } })
    })
    const accounts = spans.filter(({ name }) => name === 'GET /account')
    t.equal(accounts.length, 2)
    const [, fromMemory] = accounts as [ReceivedSpan, ReceivedSpan]
    t.same(childrenOf(spans, fromMemory), [])
    t.notOk(fromMemory.parentSpanId, 'without traceparent a request begins a trace')
    const list = named(spans, 'GET /admin/users')
    t.match(
      childrenOf(spans, list).map(({ name }) => name),
      ['users.list'],
    )
    const requests = spans.filter(({ kind }) => kind === SERVER)
    const ids = new Set(requests.map(({ spanId }) => spanId))
    for (const span of spans.filter(({ kind }) => kind === CLIENT))
      t.ok(ids.has(span.parentSpanId ?? ''), `${span.name} belongs to a request: background work has no span`)
  })

  t.test('rejected requests have spans; only errors of the service are errors (5xx)', async t => {
    const json = { 'content-type': 'application/json' }
    const spans = await spansOf(async () => {
      t.equal(await send(server, '/account'), 401)
      t.equal(await send(server, '/account/sign-in', { method: 'POST', headers: json, body: '{' }), 400)
      t.equal(await send(server, '/account', { method: 'PUT', headers: json, body: '{}' }), 401)
      t.equal(await send(server, '/nowhere/at-all', { headers: bearer('a.b.c') }), 404)
      t.equal(await send(server, '/health', { method: 'DELETE' }), 405)
    })
    const seen = spans.map(({ name, attributes, status }) => ({
      name,
      status: attributes['http.response.status_code'],
      code: status.code ?? 0,
    }))
    for (const expected of [
      { name: 'GET /account', status: 401, code: 0 },
      { name: 'POST /account/sign-in', status: 400, code: 0 },
      { name: 'PUT /account', status: 401, code: 0 },
      { name: 'GET', status: 404, code: 0 },
      { name: 'DELETE', status: 405, code: 0 },
    ])
      t.strictSame(
        seen.filter(({ name, status }) => name === expected.name && status === expected.status),
        [expected],
      )
  })

  t.test('the log lines of a request name its span', async t => {
    const body = JSON.stringify({ email: 'nobody@example.com', password: PASSWORD })
    const headers = { 'content-type': 'application/json' }
    const signIn = { method: 'POST', body }
    const before = server.output().length
    const spans = await spansOf(async () => {
      t.equal(await send(server, '/account/sign-in', { ...signIn, headers }), 401)
      t.equal(
        await send(server, '/account/sign-in', {
          ...signIn,
          headers: { ...headers, traceparent: TRACEPARENT },
        }),
        401,
      )
    })
    const requests = spans.filter(({ name }) => name === 'POST /account/sign-in')
    t.equal(requests.length, 2)
    const lines = () =>
      [
        ...server
          .output()
          .slice(before)
          .matchAll(/"route":"\/account\/sign-in"/g),
      ].length
    t.equal(await until(lines, count => count === 2, DEADLINE), 2, 'each has one line')
    for (const { traceId, spanId } of requests)
      t.match(server.output(), `"traceparent":"00-${traceId}-${spanId}-01"`)
    t.equal(requests.filter(({ traceId }) => traceId === TRACE_ID).length, 1)
  })

  t.test('no span has the query, the path, a header or the body of a request', async t => {
    const email = 'canary.ada@example.com'
    const { token, id } = await signUp(server, email)
    const secret = 'canary-0123456789-token'
    await send(server, `/account/verify-email?token=${secret}`)
    await send(server, `/account/verify-email?token=${secret}`, { headers: { accept: 'text/html' } })
    await send(server, `/users/${id}?canary=1`, { headers: bearer(token) })
    await send(server, `/nowhere/canary-path?token=${secret}`)
    await send(server, `/admin/users?search=canary`, {
      headers: { 'x-admin-key': ADMIN_KEY, 'user-agent': 'canary-agent' },
    })
    await exchange(
      server.port,
      `CANARY /canary HTTP/1.1\r\nHost: canary.example\r\nConnection: close\r\n\r\n`,
    )
    await collector.named('GET /account/verify-email')
    t.equal(await server.stop('SIGTERM'), 0)
    const text = collector.text()
    for (const forbidden of [/canary/i, 'Grace', PASSWORD, token, id, ADMIN_KEY, '127.0.0.1'])
      t.notMatch(text, forbidden)
  })
})
