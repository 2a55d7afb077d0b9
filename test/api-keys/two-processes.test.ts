/** A revoked API key is refused within a second by another process on the same SQLite file (docs/design.md, "Storage"). */
import t from 'tap'
import type { CreatedKey } from '../support/api-keys.ts'
import { bearer } from '../support/build.ts'
import { newDatabaseFile, startServer } from '../support/process.ts'
import { remoteAccountStatus, remoteSignUp, send } from '../support/remote-accounts.ts'
import { until } from '../support/until.ts'

/** Milliseconds within which another process follows. */
const SECOND = 1_000

t.test('two processes on one SQLite file: a revoked key is refused by both', async t => {
  const databaseFile = await newDatabaseFile(t)
  const first = await startServer(t, { databaseFile })
  const second = await startServer(t, { databaseFile })
  const { token } = await remoteSignUp(first, 'user@example.com')
  const created = await send(first, 'POST', '/account/api-keys', { name: 'a script' }, bearer(token))
  t.equal(created.status, 201)
  const key = (await created.json()) as CreatedKey
  t.equal(await remoteAccountStatus(first, key.token), 200)
  t.equal(await remoteAccountStatus(second, key.token), 200)
  const revoked = await fetch(`${second.url}/account/api-keys/${key.apiKey.id}`, {
    method: 'DELETE',
    headers: bearer(token),
  })
  t.equal(revoked.status, 204)
  t.equal(await remoteAccountStatus(second, key.token), 401, 'at once in the process that did it')
  const status = await until(
    () => remoteAccountStatus(first, key.token),
    status => status === 401,
    SECOND,
  )
  t.equal(status, 401, 'in the other for requests that begin a second later')
})
