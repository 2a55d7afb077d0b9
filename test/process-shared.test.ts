/** Several processes on one SQLite file: revocation and locks (DESIGN §5, §7). */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import t from 'tap'
import { ADMIN_KEY, PASSWORD, temporaryFolder } from './support/build.ts'
import { errorsOf } from './support/error-answer.ts'
import { type Running, startServer } from './support/process.ts'

t.setTimeout(120_000)
t.jobs = 2

const EMAIL = 'user@example.com'
/** Milliseconds until a condition that does not come true counts as failed. */
const DEADLINE = 10_000

const send = (server: Running, method: string, path: string, body: object, headers: object = {}) =>
  fetch(server.url + path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

const signIn = (server: Running, password = PASSWORD) =>
  send(server, 'POST', '/account/sign-in', { email: EMAIL, password })

const signUp = async (server: Running) => {
  const response = await send(server, 'POST', '/account/sign-up', { email: EMAIL, password: PASSWORD })
  const { accessToken, user } = (await response.json()) as { accessToken: string; user: { id: string } }
  return { id: user.id, headers: { authorization: `Bearer ${accessToken}` } }
}

const accountStatus = async (server: Running, headers: Record<string, string>): Promise<number> => {
  const response = await fetch(`${server.url}/account`, { headers })
  await response.arrayBuffer()
  return response.status
}

t.test('a user disabled in one process is out of the other within a second (DESIGN §4, §7)', async t => {
  const databaseFile = join(temporaryFolder(t), 'test.db')
  const first = await startServer(t, { databaseFile })
  const second = await startServer(t, { databaseFile })
  const { id, headers } = await signUp(first)
  t.equal(await accountStatus(first, headers), 200, 'remembered by the first')
  t.equal(await accountStatus(second, headers), 200, 'known to the second')
  const asAdmin = { 'x-admin-key': ADMIN_KEY }
  const change = (server: Running, fields: object) =>
    send(server, 'PUT', `/admin/users/${id}`, fields, asAdmin).then(response => response.status)
  const untilAccount = async (status: number): Promise<number> => {
    const end = Date.now() + DEADLINE
    while (Date.now() < end) if ((await accountStatus(first, headers)) === status) return status
    return accountStatus(first, headers)
  }
  t.equal(await change(second, { disabled: true }), 200)
  t.equal(await accountStatus(second, headers), 401, 'at once in the process that did it')
  t.equal(await untilAccount(401), 401, 'and then in the other')
  t.equal(await change(second, { disabled: false }), 200)
  t.equal((await signIn(first)).status, 200, 'the account is back')
  t.equal(await accountStatus(first, headers), 401, 'its old tokens are not')
})

t.test("a change of the other process is seen in the first one's answers (DESIGN §7)", async t => {
  const databaseFile = join(temporaryFolder(t), 'test.db')
  const first = await startServer(t, { databaseFile })
  const second = await startServer(t, { databaseFile })
  const { headers } = await signUp(first)
  t.equal(await accountStatus(first, headers), 200)
  t.equal((await send(second, 'PUT', '/account', { firstName: 'Ada' }, headers)).status, 200)
  const end = Date.now() + DEADLINE
  let name: unknown = null
  while (name !== 'Ada' && Date.now() < end) {
    const account = (await (await fetch(`${first.url}/account`, { headers })).json()) as Record<
      string,
      unknown
    >
    name = account.firstName
  }
  t.equal(name, 'Ada')
})

t.test('a lock held by another process stalls no read and is no wrong password (DESIGN §7)', async t => {
  const databaseFile = join(temporaryFolder(t), 'test.db')
  const server = await startServer(t, { databaseFile })
  const { headers } = await signUp(server)
  const database = new Database(databaseFile)
  t.teardown(() => database.close())

  const put = (names: object): Promise<Response> => send(server, 'PUT', '/account', names, headers)

  database.exec('BEGIN IMMEDIATE')
  const writes = { 'sign-in': signIn(server), 'PUT /account': put({ firstName: 'Ada' }) }
  t.equal((await signIn(server, 'not the pass phrase')).status, 401, 'a wrong password needs no write')
  for (let read = 0; read < 100; read += 1)
    if ((await accountStatus(server, headers)) !== 200) t.fail('a read failed under the lock')
  t.equal((await fetch(`${server.url}/health`)).status, 200)
  t.equal((await fetch(`${server.url}/users`, { headers })).status, 200)
  database.exec('ROLLBACK')

  for (const [title, write] of Object.entries(writes)) {
    const response = await write
    t.ok([200, 503].includes(response.status), `${title}: done, or try again (${response.status})`)
  }
  t.equal((await signIn(server)).status, 200, 'after the release sign-ins work')
  t.equal((await put({ lastName: 'Lovelace' })).status, 200, 'and so do other writes')
})

t.test('a lock that is never released ends a write with 503 in the error shape (DESIGN §3)', async t => {
  const databaseFile = join(temporaryFolder(t), 'test.db')
  const server = await startServer(t, { databaseFile })
  const { headers } = await signUp(server)
  const database = new Database(databaseFile)
  t.teardown(() => database.close())
  database.exec('BEGIN IMMEDIATE')
  const response = await signIn(server)
  const answer = {
    statusCode: response.status,
    headers: Object.fromEntries(response.headers),
    body: await response.text(),
  }
  t.strictSame(Object.keys(errorsOf(t, answer, 503)), ['global'])
  t.match(answer.headers['retry-after'], /^[1-9]\d*$/)
  t.equal(await accountStatus(server, headers), 200, 'reads go on')
  database.exec('ROLLBACK')
  t.equal((await signIn(server)).status, 200)
})
