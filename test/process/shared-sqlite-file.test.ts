/** Several processes on one SQLite file: revocation and locks (docs/design.md, "Tokens and sessions" and "Storage"). */
import Database from 'better-sqlite3'
import t from 'tap'
import { ADMIN_KEY, bearer } from '../support/build.ts'
import { errorsAt } from '../support/error-response.ts'
import { newDatabaseFile, type Running, startServer } from '../support/process.ts'
import { remoteAccountStatus, remoteSignIn, remoteSignUp, send } from '../support/remote-accounts.ts'
import { until } from '../support/until.ts'

t.jobs = 3

const EMAIL = 'user@example.com'
/** Milliseconds until a condition that does not come true counts as failed. */
const DEADLINE = 10_000

t.test('two processes', async t => {
  const databaseFile = await newDatabaseFile(t)
  const first = await startServer(t, { databaseFile })
  const second = await startServer(t, { databaseFile })

  t.test('a user disabled in one process is rejected by the other within a second', async t => {
    const { id, token } = await remoteSignUp(first, EMAIL)
    t.equal(await remoteAccountStatus(first, token), 200, 'cached by the first')
    t.equal(await remoteAccountStatus(second, token), 200, 'known to the second')
    const asAdmin = { 'x-admin-key': ADMIN_KEY }
    const change = (server: Running, fields: object) =>
      send(server, 'PUT', `/admin/users/${id}`, fields, asAdmin).then(response => response.status)
    t.equal(await change(second, { disabled: true }), 200)
    t.equal(await remoteAccountStatus(second, token), 401, 'at once in the process that did it')
    t.equal(
      await until(
        () => remoteAccountStatus(first, token),
        status => status === 401,
        DEADLINE,
      ),
      401,
      'and then in the other',
    )
    t.equal(await change(second, { disabled: false }), 200)
    t.equal((await remoteSignIn(first, EMAIL)).status, 200, 'the account is back')
    t.equal(await remoteAccountStatus(first, token), 401, 'its old tokens are not')
  })

  t.test("a change in one process appears in the other's responses", async t => {
    const { token } = await remoteSignUp(first, 'other@example.com')
    const headers = bearer(token)
    t.equal(await remoteAccountStatus(first, token), 200)
    t.equal((await send(second, 'PUT', '/account', { firstName: 'Ada' }, headers)).status, 200)
    const account = async () =>
      (await (await fetch(`${first.url}/account`, { headers })).json()) as Record<string, unknown>
    const seen = await until(account, ({ firstName }) => firstName === 'Ada', DEADLINE)
    t.equal(seen.firstName, 'Ada')
  })
})

t.test('a lock held by another process delays no read, is no wrong password, and ends in 503', async t => {
  const databaseFile = await newDatabaseFile(t)
  const server = await startServer(t, { databaseFile })
  const { token } = await remoteSignUp(server, EMAIL)
  const headers = bearer(token)
  const database = new Database(databaseFile)
  t.teardown(() => database.close())

  const put = (names: object): Promise<Response> => send(server, 'PUT', '/account', names, headers)

  database.exec('BEGIN IMMEDIATE')
  const writes = { 'sign-in': remoteSignIn(server, EMAIL), 'PUT /account': put({ firstName: 'Ada' }) }
  t.equal(
    (await remoteSignIn(server, EMAIL, 'not the pass phrase')).status,
    401,
    'a wrong password needs no write',
  )
  for (let read = 0; read < 100; read += 1)
    if ((await remoteAccountStatus(server, token)) !== 200) t.fail('a read failed under the lock')
  t.equal((await fetch(`${server.url}/health`)).status, 200)
  t.equal((await fetch(`${server.url}/users`, { headers })).status, 200)
  database.exec('ROLLBACK')

  for (const [title, write] of Object.entries(writes)) {
    const response = await write
    t.ok([200, 503].includes(response.status), `${title}: done, or try again (${response.status})`)
  }
  t.equal((await remoteSignIn(server, EMAIL)).status, 200, 'after the release sign-ins work')
  t.equal((await put({ lastName: 'Lovelace' })).status, 200, 'and so do other writes')

  // A lock that is never released.
  database.exec('BEGIN IMMEDIATE')
  const signIn = await remoteSignIn(server, EMAIL)
  const response = {
    statusCode: signIn.status,
    headers: Object.fromEntries(signIn.headers),
    body: await signIn.text(),
  }
  errorsAt(t, response, 503, ['global'])
  t.match(response.headers['retry-after'], /^[1-9]\d*$/)
  t.equal(await remoteAccountStatus(server, token), 200, 'reads go on')
  database.exec('ROLLBACK')
  t.equal((await remoteSignIn(server, EMAIL)).status, 200)
})
