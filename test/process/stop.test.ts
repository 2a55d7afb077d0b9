/** Graceful shutdown: the process drains, completes accepted requests, and loses nothing (docs/design.md, "Errors" and "Hot path"). */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { asAdmin, build, PASSWORD, signIn } from '../support/build.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { exchange, newDatabaseFile, parseResponse, type Running, startServer } from '../support/process.ts'
import { until } from '../support/until.ts'

t.jobs = 3

const EMAIL = 'user@example.com'
const CREDENTIALS = JSON.stringify({ email: EMAIL, password: PASSWORD })
const JSON_TYPE = { 'content-type': 'application/json' }
/** Milliseconds until a condition that does not come true counts as failed. */
const DEADLINE = 10_000

/** Milliseconds of silence after which a response is complete: before the stop, the service keeps connections open. */
const SILENCE = 500

const post = (server: Running, path: string): Promise<Response> =>
  fetch(`${server.url}${path}`, { method: 'POST', headers: JSON_TYPE, body: CREDENTIALS })

const get = async (server: Running, path: string) => {
  const raw = await exchange(server.port, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`, SILENCE)
  const { status, headers, body } = parseResponse(raw)
  return { statusCode: status, headers, body }
}

/** Starts a sign-up and holds back the end of its body; `finish` sends it. @returns the complete response. */
const halfSignUp = async (port: number, email: string) => {
  const socket: Socket = connect(port, '127.0.0.1')
  let response = ''
  socket.on('data', chunk => {
    response += chunk
  })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  const body = JSON.stringify({ email, password: PASSWORD })
  const head = `POST /account/sign-up HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
  // 100 Continue shows that the service has accepted the request.
  socket.write(`${head}\r\nExpect: 100-continue\r\n\r\n${body.slice(0, 10)}`)
  while (!response.includes('100 Continue')) await once(socket, 'data')
  response = ''
  return {
    socket,
    async finish(): Promise<string> {
      const closed = once(socket, 'close')
      socket.write(body.slice(10))
      await closed
      return response
    },
  }
}

t.test('SIGTERM drains: not ready, still serving, nothing cut off', async t => {
  const server = await startServer(t, { env: { DRAIN_DELAY: '2s' } })
  t.equal((await post(server, '/account/sign-up')).status, 201)
  t.equal((await get(server, '/ready')).statusCode, 200)
  const inFlight = await halfSignUp(server.port, 'in-flight@example.com')
  const idle = connect(server.port, '127.0.0.1')
  await once(idle, 'connect')
  const burst = Array.from({ length: 6 }, () => post(server, '/account/sign-in'))
  await Promise.race(burst)
  const stopped = server.stop('SIGTERM')

  const ready = await until(
    () => get(server, '/ready'),
    ({ statusCode }) => statusCode === 503,
    DEADLINE,
  )
  globalErrorOf(t, ready, 503, 'GET /ready')
  t.match(ready.headers['retry-after'], /^[1-9]\d*$/, 'Retry-After')
  t.equal(ready.headers.connection, 'close')
  const health = await get(server, '/health')
  t.equal(health.statusCode, 200, 'GET /health: the process lives')
  t.equal(health.headers.connection, 'close')
  const rejected = await get(server, '/account')
  globalErrorOf(t, rejected, 401, 'other routes respond as usual')
  t.equal(rejected.headers.connection, 'close')

  let kept = ''
  idle.on('data', chunk => {
    kept += chunk
  })
  idle.write('GET /health HTTP/1.1\r\nHost: a\r\n\r\n')
  await once(idle, 'close')
  t.match(
    parseResponse(kept),
    { status: 200, headers: { connection: 'close' } },
    'a kept connection gets a response',
  )

  const statuses = (await Promise.all(burst)).map(response => response.status)
  t.strictSame(statuses, [200, 200, 200, 200, 200, 200], 'hashes in progress')
  t.equal(parseResponse(await inFlight.finish()).status, 201, 'a body in progress')
  t.equal(await stopped, 0, 'exit code')
})

t.test('a client that never completes its request does not delay the stop', async t => {
  const server = await startServer(t)
  const { socket } = await halfSignUp(server.port, EMAIL)
  t.teardown(() => socket.destroy())
  const idle = connect(server.port, '127.0.0.1')
  idle.on('error', () => undefined)
  t.teardown(() => idle.destroy())
  await once(idle, 'connect')
  t.type(await server.stop('SIGTERM'), 'number', 'it ended')
})

for (const signal of ['SIGTERM', 'SIGINT'] as const)
  t.test(`${signal} loses no last request and no request in flight (§5.1.2)`, async t => {
    const databaseFile = await newDatabaseFile(t)
    const server = await startServer(t, { databaseFile })
    const signedUp = (await (await post(server, '/account/sign-up')).json()) as { accessToken: string }
    const headers = { authorization: `Bearer ${signedUp.accessToken}`, ...JSON_TYPE }
    const put = { method: 'PUT', headers, body: JSON.stringify({ firstName: 'Ada' }) }
    t.equal((await fetch(`${server.url}/account`, put)).status, 200)
    const account = (await (await fetch(`${server.url}/account`, { headers })).json()) as Record<
      string,
      unknown
    >
    t.type(account.lastRequestAt, 'string')
    const inFlight = await halfSignUp(server.port, 'in-flight@example.com')
    const stopped = server.stop(signal)
    t.equal(parseResponse(await inFlight.finish()).status, 201, 'without a drain delay too')
    t.equal(await stopped, 0, 'exit code')

    const again = await build(t, { env: { DATABASE_URL: `sqlite:${databaseFile}` }, realHashing: true })
    const { results } = (await again.inject({ url: `/admin/users?email=${EMAIL}`, headers: asAdmin })).json()
    t.match(results, [{ email: EMAIL, firstName: 'Ada', lastRequestAt: account.lastRequestAt }])
    const finished = await signIn(again, 'in-flight@example.com')
    t.equal(finished.statusCode, 200, 'the sign-up in flight is on disk')
  })

t.test('an unread log does not delay the stop', async t => {
  const server = await startServer(t, { env: { LOG_REQUESTS: 'on' } })
  server.process.stdout?.pause()
  // More than a pipe and the reader's buffer hold: two lines per request.
  for (let round = 0; round < 40; round += 1) {
    const responses = await Promise.all(
      Array.from({ length: 100 }, () =>
        fetch(`${server.url}/health`, { signal: AbortSignal.timeout(DEADLINE) }),
      ),
    )
    t.ok(responses.every(({ status }) => status === 200))
  }
  server.process.stdout?.resume()
  t.equal(await server.stop('SIGTERM'), 0)
})
