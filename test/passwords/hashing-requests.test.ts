/**
 * The hashing queue as clients see it, over real sockets: rejected at once when full, cancelled on disconnect (docs/design.md, "Tokens and
 * sessions").
 */
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { build, freshEmail, logCapture, PASSWORD, signUp } from '../support/build.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { HeldHashing } from '../support/fake-hashing.ts'
import { parseResponse } from '../support/process.ts'

const log = logCapture()
const hasher = new HeldHashing()
const app = await build(t, { hasher, logStream: log.stream, env: { LOG_LEVEL: 'debug' } })
await app.listen({ host: '127.0.0.1', port: 0 })
const { port } = app.server.address() as AddressInfo

interface Client {
  readonly socket: Socket
  readonly responded: Promise<ReturnType<typeof parseResponse>>
}

/** Sends it, and waits until the use case runs: its body is read by then. */
const post = async (path: string, email: string, password = PASSWORD): Promise<Client> => {
  const body = JSON.stringify({ email, password })
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  const arrived = once(app.server, 'request')
  let response = ''
  socket.on('data', chunk => {
    response += chunk
  })
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  const responded = once(socket, 'close').then(() => parseResponse(response))
  const [request] = await arrived
  while (!request.readableEnded) await setImmediate()
  await setImmediate()
  return { socket, responded }
}

const gone = (): Record<string, unknown>[] =>
  log.records().filter(({ msg }) => msg === 'The client disconnected')

/** Disconnects, and waits until the service has noticed. */
const leave = async ({ socket }: Client): Promise<void> => {
  const before = gone().length
  socket.destroy()
  while (gone().length === before) await setImmediate()
}

const reset = (): void => {
  hasher.hold()
  hasher.begun.length = 0
}

t.test('while the queue is full, sign-ins are rejected before hashing', async t => {
  reset()
  hasher.release()
  const { email } = await signUp(app)
  hasher.hold()
  const taken = []
  for (let place = 0; place < 3; place += 1) taken.push(await post('/account/sign-in', email))
  for (const [path, who] of [
    ['/account/sign-in', email],
    ['/account/sign-in', freshEmail()],
    ['/account/sign-up', freshEmail()],
  ] as const) {
    const { status, headers, body } = await (await post(path, who)).responded
    globalErrorOf(t, { statusCode: status, headers, body }, 503, path)
    t.match(headers['retry-after'], /^\d+$/)
  }
  hasher.release()
  for (const { responded } of taken) t.equal((await responded).status, 200)
})

t.test('while the queue is full, sign-ins and sign-ups are rejected before their body is read', async t => {
  reset()
  const taken = []
  for (let place = 0; place < 3; place += 1) taken.push(await post('/account/sign-up', freshEmail()))
  for (const path of ['/account/sign-in', '/account/sign-up']) {
    const socket = connect(port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    let received = ''
    socket.setEncoding('utf8').on('data', chunk => {
      received += chunk
    })
    const head = (length: number) =>
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`
    socket.write(`${head(9)}{`)
    while (!received.endsWith('}')) await once(socket, 'data')
    const early = parseResponse(received)
    globalErrorOf(t, { statusCode: early.status, headers: early.headers, body: early.body }, 503, path)
    t.equal(early.headers['retry-after'], '1')
    received = ''
    socket.write(`"a": 0 }${head(2)}{}`)
    while (!received.endsWith('}')) await once(socket, 'data')
    t.equal(parseResponse(received).status, 503, 'the connection stays usable, and no body is validated')
  }
  hasher.release()
  for (const { responded } of taken) t.equal((await responded).status, 201)
  const { statusCode } = await app.inject({ method: 'POST', url: '/account/sign-in', payload: {} })
  t.equal(statusCode, 400, 'with room, the body decides first')
})

t.test('the request of a client that disconnects before its hash is dropped', async t => {
  reset()
  const [first, second, third] = [freshEmail(), freshEmail(), freshEmail()]
  const done = await post('/account/sign-up', first, 'the first pass phrase')
  const left = await post('/account/sign-up', second, 'the second pass phrase')
  await post('/account/sign-in', third, 'the third pass phrase').then(leave)
  await leave(left)
  const after = await post('/account/sign-up', second, 'another pass phrase')
  hasher.release()
  t.equal((await done.responded).status, 201)
  t.equal(
    (await after.responded).status,
    201,
    'the e-mail is free, and no sign-up waits for a disconnected one',
  )
  t.strictSame(hasher.begun, ['the first pass phrase', 'another pass phrase'])
  t.match(
    gone().map(({ level, status }) => ({ level, status })),
    [
      { level: 20, status: 499 },
      { level: 20, status: 499 },
    ],
    'at the level debug',
  )
  t.strictSame(
    log.records().filter(({ level, status }) => Number(level) > 30 && status !== 503),
    [],
    'and nothing is said beyond',
  )
})

t.test('a sign-up continues when an earlier one with the same e-mail disconnects', async t => {
  reset()
  const email = freshEmail()
  const busy = await post('/account/sign-up', freshEmail())
  const left = await post('/account/sign-up', email, 'of who has gone')
  const behind = await post('/account/sign-up', email, 'of who waits')
  await leave(left)
  hasher.release()
  t.equal((await busy.responded).status, 201)
  t.equal((await behind.responded).status, 201)
  t.strictSame(hasher.begun, [PASSWORD, 'of who waits'])
})

t.test('a hash that has started is finished, and so is the sign-up', async t => {
  reset()
  const email = freshEmail()
  const { socket } = await post('/account/sign-up', email)
  t.strictSame(hasher.begun, [PASSWORD])
  socket.destroy()
  hasher.release()
  while ((await app.services.storage.users.findByEmail(email)) === undefined) await setImmediate()
  t.pass('the account is there')
})
