/** Several workers on SQLite: a change that one worker acknowledges is in force in all of them (docs/design.md, "Workers on SQLite"). */
import t, { type Test } from 'tap'
import { asAdmin, bearer, PASSWORD } from '../support/build.ts'
import { startServer } from '../support/process.ts'
import { type Connection, onEach, openConnections } from './connections.ts'

const ROUNDS = 10
const NEW_PASSWORD = 'nine geese left the barn'

interface Round {
  readonly t: Test
  /** The connection that makes the change. */
  readonly connection: Connection
  readonly connections: readonly Connection[]
  readonly email: string
}

const signUp = async (connection: Connection, email: string) => {
  const { json } = await connection({
    ...{ method: 'POST', path: '/account/sign-up', body: { email, password: PASSWORD } },
  })
  const { accessToken, user } = json as { accessToken: string; user: { id: string } }
  return { token: accessToken, id: user.id }
}

const account = (token: string) => ({ path: '/account', headers: bearer(token) })

/** Every worker has cached the token, then the change is made, and no worker accepts the token again. */
const revokes =
  (change: (connection: Connection, user: { token: string; id: string }) => Promise<{ status: number }>) =>
  async ({ t, connection, connections, email }: Round): Promise<void> => {
    const user = await signUp(connection, email)
    const before = await onEach(connections, account(user.token))
    t.ok(before.every(({ status }) => status === 200))
    t.match(String((await change(connection, user)).status), /^2/)
    const after = await Promise.all(connections.map(each => each(account(user.token))))
    t.strictSame([...new Set(after.map(({ status }) => status))], [401])
  }

const CHANGES: Record<string, (round: Round) => Promise<void>> = {
  'sign-out': revokes((connection, { token }) =>
    connection({ method: 'POST', path: '/account/sign-out', headers: bearer(token) }),
  ),
  'the end of all sessions': revokes((connection, { token }) =>
    connection({ method: 'DELETE', path: '/account/sessions?scope=all', headers: bearer(token) }),
  ),
  'a new password': revokes((connection, { token }) =>
    connection({
      method: 'PUT',
      path: '/account/password',
      headers: bearer(token),
      body: { currentPassword: PASSWORD, newPassword: NEW_PASSWORD },
    }),
  ),
  'disabling a user': revokes((connection, { id }) =>
    connection({ method: 'PUT', path: `/admin/users/${id}`, headers: asAdmin, body: { disabled: true } }),
  ),
  'removing a user': revokes((connection, { id }) =>
    connection({ method: 'DELETE', path: `/admin/users/${id}`, headers: asAdmin }),
  ),
  async 'deleting an API key'({ t, connection, connections, email }) {
    const { token } = await signUp(connection, email)
    const { json } = await connection({
      ...{ method: 'POST', path: '/account/api-keys', headers: bearer(token), body: { name: 'script' } },
    })
    const { token: key, apiKey } = json as { token: string; apiKey: { id: string } }
    const before = await onEach(connections, account(key))
    t.ok(before.every(({ status }) => status === 200))
    const path = `/account/api-keys/${apiKey.id}`
    t.equal((await connection({ method: 'DELETE', path, headers: bearer(token) })).status, 204)
    const after = await Promise.all(connections.map(each => each(account(key))))
    t.ok(after.every(({ status }) => status === 401))
  },
  async 'deleting an admin key'({ t, connection, connections, email: name }) {
    const { json } = await connection({
      ...{ method: 'POST', path: '/admin/keys', headers: asAdmin, body: { name, scopes: ['users:read'] } },
    })
    const { adminKey, key } = json as { adminKey: string; key: { id: string } }
    const list = { path: '/admin/users?limit=1', headers: { 'x-admin-key': adminKey } }
    const before = await onEach(connections, list)
    t.ok(before.every(({ status }) => status === 200))
    const path = `/admin/keys/${key.id}`
    t.equal((await connection({ method: 'DELETE', path, headers: asAdmin })).status, 204)
    const after = await Promise.all(connections.map(each => each(list)))
    t.ok(after.every(({ status }) => status === 401))
  },
  async 'a new name'({ t, connection, connections, email }) {
    const { token } = await signUp(connection, email)
    await onEach(connections, account(token))
    const body = { firstName: email }
    await connection({ method: 'PUT', path: '/account', headers: bearer(token), body })
    const after = await Promise.all(connections.map(each => each(account(token))))
    t.ok(after.every(({ json }) => (json as { firstName: string }).firstName === email))
  },
}

t.test('a change is in force in every worker when one acknowledges it', async t => {
  const server = await startServer(t, { env: { WORKERS: '2' } })
  const connections = openConnections(t, server)
  for (const [kind, [name, change]] of Object.entries(CHANGES).entries())
    await t.test(name, async t => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const connection = connections[round % connections.length] as Connection
        await change({ t, connection, connections, email: `user${round}@change${kind}.example` })
      }
    })
})
