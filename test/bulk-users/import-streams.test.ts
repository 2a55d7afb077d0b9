/**
 * Imports in progress (docs/design.md, "Account life cycle"): slow, silent, disconnected and non-reading clients, a stop, a failing store.
 */
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { readLines, toLines } from '#http/validation/ndjson'
import { createKey, revokeKey } from '../support/admin-keys.ts'
import { ADMIN_KEY, asAdmin, freshEmail, logCapture, manualClock } from '../support/build.ts'
import { fromLines, IMPORT, openImport } from '../support/bulk-users.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { exchange, parseResponse } from '../support/process.ts'

/** Milliseconds of waiting for a response that ends. */
const SILENCE = 3_000

/** A request is late after 200 ms; Node checks every half second. */
const hurry = ({ server }: FastifyInstance): void => {
  server.headersTimeout = 100
  server.requestTimeout = 200
}

const user = () => toLines([{ email: freshEmail() }])

t.test('a chunk of many lines leaves time to other requests', async t => {
  let turns = 0
  const ticker = setInterval(() => {
    turns += 1
  }, 1)
  const started = performance.now()
  const chunk = Buffer.from('{}\n'.repeat(200_000))
  for await (const _batch of readLines(ReadableStream.from([chunk]), () => false));
  clearInterval(ticker)
  t.ok(turns > (performance.now() - started) / 100, `${turns} turns`)
})

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock()
  t.test('the result of a line is sent while later lines are still to come', async t => {
    const app = await build(t)
    const { request, response, results } = await openImport(t, app)
    request.write(user())
    t.equal((await response).statusCode, 200)
    t.match(await results(1), [{ line: 1, status: 'created' }])
    const [start, end] = [user().slice(0, 9), user().slice(9)]
    request.write(`${user()}${start}`)
    t.match(await results(2), [{}, { line: 2, status: 'created' }])
    request.end(end.trimEnd())
    t.match((await results(4)).slice(2), [
      { line: 3, status: 'created' },
      { status: 'finished', created: 3, exists: 0, failed: 0 },
    ])
  })

  for (const [title, end] of [
    ['is revoked', async (app: FastifyInstance, id: string) => void (await revokeKey(app, id))],
    ['has expired', async () => void clock.advance(3_600_000)],
  ] as const)
    t.test(`an import ends when its admin key ${title}`, async t => {
      const app = await build(t, { clock: clock.now })
      const expiresAt = new Date(clock.now() + 3_600_000).toISOString()
      const key = await createKey(app, ['users:import'], { expiresAt })
      const { request, results, ended } = await openImport(t, app, key.headers)
      request.write(user())
      t.match(await results(1), [{ status: 'created' }])
      await end(app, key.id)
      request.write(user())
      const errors = { global: ['This route needs a valid admin key'] }
      t.match((await results(2)).at(-1), { status: 'stopped', created: 1, errors })
      await ended
      const { total } = (await app.inject({ url: '/admin/users?count=true', headers: asAdmin })).json()
      t.equal(total, 1)
    })

  t.test('a slow but steady import has no time limit; other requests do', async t => {
    const app = await build(t)
    hurry(app)
    const late = once(app.server, 'clientError')
    const { request, results, ended } = await openImport(t, app)
    request.write(user())
    await results(1)
    const [error] = await late
    t.equal(error.code, 'ERR_HTTP_REQUEST_TIMEOUT', 'Node has reported that it is late')
    request.end(user())
    t.match((await results(3)).at(-1), { status: 'finished', created: 2 })
    await ended
    const { port } = app.server.address() as AddressInfo
    const head = 'Host: a\r\nContent-Length: 99\r\nContent-Type: application'
    const rejected = await exchange(port, `POST ${IMPORT} HTTP/1.1\r\n${head}/x-ndjson\r\n\r\n{`, SILENCE)
    t.equal(parseResponse(rejected).status, 401, 'nor does a client that fails authentication')
    const slow = await exchange(port, `POST /account/sign-in HTTP/1.1\r\n${head}/json\r\n\r\n{`, SILENCE)
    t.equal(parseResponse(slow).status, 408)
  })

  t.test('the next request on the connection has the usual time limit', async t => {
    const app = await build(t)
    hurry(app)
    await app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = app.server.address() as AddressInfo
    const late = once(app.server, 'clientError')
    const socket = connect(port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    let response = ''
    socket.on('data', chunk => {
      response += chunk
    })
    const head = `Host: a\r\nX-Admin-Key: ${ADMIN_KEY}\r\nTransfer-Encoding: chunked\r\n`
    socket.write(`POST ${IMPORT} HTTP/1.1\r\n${head}Content-Type: application/x-ndjson\r\n\r\n1\r\n\n\r\n`)
    await late
    const closed = once(socket, 'close')
    socket.write('0\r\n\r\n')
    while (!response.includes('0\r\n\r\n')) await once(socket, 'data')
    t.match(response, /"finished"/)
    socket.write(
      'POST /account/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    )
    await closed
    t.equal(parseResponse(response.slice(response.indexOf('0\r\n\r\n') + 5)).status, 408)
  })

  t.test('a silent client is disconnected', async t => {
    const app = await build(t)
    const connected = once(app.server, 'connection')
    const { request, results, ended } = await openImport(t, app)
    request.write(user())
    await results(1)
    // Not before: a slow store is silent too.
    const [socket] = await connected
    socket.setTimeout(100)
    await ended
    t.notMatch((await results(1)).at(-1), { status: 'finished' })
  })

  t.test('complete lines of an aborted body are imported, and no error is logged', async t => {
    const logs = logCapture()
    const app = await build(t, { logStream: logs.stream })
    const gone = once(app.server, 'request').then(([, response]) => once(response, 'close'))
    const { request, results } = await openImport(t, app)
    const [whole, cut] = [freshEmail(), freshEmail()]
    request.write(`${toLines([{ email: whole }])}{"email":"${cut}"}`)
    await results(1)
    request.destroy()
    await gone
    await app.services.storage.ping()
    t.equal(await app.services.users.count({ email: whole }), 1)
    t.equal(await app.services.users.count({ email: cut }), 0)
    t.strictSame(logs.problems(), [])
  })

  t.test('a stop ends the import after the last stored line, even with a silent client', async t => {
    const app = await build(t)
    const { request, results, ended } = await openImport(t, app)
    request.write(user())
    await results(1)
    await app.drain()
    const errors = { global: ['This instance is shutting down'] }
    t.match((await results(2)).at(-1), { status: 'stopped', created: 1, exists: 0, failed: 0, errors })
    request.end(user())
    await app.close()
    await ended
    t.equal((await results(3)).length, 2, 'and nothing more was read')
  })

  t.test('a store failure ends the import: reported lines are stored, the rest must be repeated', async t => {
    const logs = logCapture()
    const app = await build(t, { logStream: logs.stream })
    const { request, results } = await openImport(t, app)
    request.write(user())
    await results(1)
    await app.services.storage.close()
    request.end(`${user()}${user()}`)
    const errors = { global: ['The database is not available, try again'] }
    t.match((await results(2)).slice(1), [{ status: 'stopped', created: 1, exists: 0, failed: 0, errors }])
    const lines = logs.records().filter(({ route }) => route === IMPORT)
    t.match(lines, [{ level: 50, method: 'POST', route: IMPORT, status: 200, msg: errors.global[0] }])
    t.equal(lines.length, 1, 'logged once')
  })

  t.test('an import pauses while the client does not read the results, and loses none', async t => {
    const app = await build(t)
    let most = 0
    app.server.on('request', (_request, response) => {
      const timer = setInterval(() => {
        most = Math.max(most, response.writableLength)
      }, 5)
      response.on('close', () => clearInterval(timer))
    })
    const { request, response: head } = await openImport(t, app)
    const count = 100_000
    const sent = once(request, 'finish').then(() => 'all sent')
    request.end('{}\n'.repeat(count))
    const response = await head
    response.pause()
    await Promise.race([sent, delay(500)])
    let text = ''
    for await (const chunk of response) text += chunk
    const all = fromLines(text)
    t.equal(all.length, count + 1)
    t.strictSame(all.at(-1), { status: 'finished', created: 0, exists: 0, failed: count })
    t.ok(most < 200_000, `at most ${most} bytes waited for the client`)
  })

  t.test('the body of an unauthenticated client is not read', async t => {
    const app = await build(t)
    const headers = { ...asAdmin, 'x-admin-key': 'wrong', 'content-type': 'application/x-ndjson' }
    const response = await app.inject({ method: 'POST', url: IMPORT, headers, payload: user() })
    globalErrorOf(t, response, 401)
    t.equal(await app.services.users.count({}), 0)
  })
})
