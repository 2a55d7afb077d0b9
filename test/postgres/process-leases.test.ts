/** Revocation across processes: acknowledged means that no process uses what it cached before (`src/storage/postgres/process-leases.ts`). */
import type { FastifyInstance } from 'fastify'
import pg from 'pg'
import t, { type Test } from 'tap'
import { openPostgresStorage } from '#core/store/postgres'
import { allFeatures } from '#features/built-in'
import { Database, ignore } from '#storage/postgres/database'
import { PROOF_OF_PRIMARY, ProcessLeases } from '#storage/postgres/process-leases'
import { startPostgres } from '../../scripts/postgres-server.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  build,
  logCapture,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { addMember, organizationOf } from '../support/organizations.ts'
import { newDatabase, query } from '../support/postgres.ts'
import { until } from '../support/until.ts'

t.jobs = 3

/** Milliseconds: a generous bound for polling. */
const BOUND = 60_000

/** Services of several processes on one database that cache already. */
const several = async (t: Test, count = 2, env: Record<string, string> = {}) => {
  const url = await newDatabase(t)
  const apps: FastifyInstance[] = []
  for (let number = 0; number < count; number += 1)
    apps.push(await build(t, { env: { DATABASE_URL: url, ...env } }))
  await until(
    () => leasesOf(url),
    leases => leases.length === count,
    BOUND,
  )
  return { url, apps: apps as [FastifyInstance, FastifyInstance, ...FastifyInstance[]] }
}

const leasesOf = (url: string) => query(url, 'SELECT id, confirmed, renewals FROM process_leases')

const metric = async (app: FastifyInstance, name: string): Promise<number> => {
  const { body } = await app.inject({ url: '/admin/metrics', headers: asAdmin })
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(body)?.[1])
}

const addKey = async (app: FastifyInstance, token: string) => {
  const response = await app.inject({
    method: 'POST',
    url: '/account/api-keys',
    headers: bearer(token),
    payload: { name: 'a key' },
  })
  return response.json() as { token: string; apiKey: { id: string } }
}

t.test('the end of access holds in every process once it is acknowledged', async t => {
  const { apps } = await several(t, 3)
  const [a] = apps
  const statuses = (token: string) => Promise.all(apps.map(app => accountStatus(app, token)))
  for (let round = 0; round < 10; round += 1) {
    const { email, token, id } = await signUp(a)
    const other: string = (await signIn(a, email)).json().accessToken
    const { token: key, apiKey } = await addKey(a, token)
    const all = [token, other, key]
    for (const one of all) t.strictSame(await statuses(one), [200, 200, 200], 'cached everywhere')

    await a.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(other) })
    t.strictSame(await statuses(other), [401, 401, 401], 'a sign-out')
    await a.inject({ method: 'DELETE', url: `/account/api-keys/${apiKey.id}`, headers: bearer(token) })
    t.strictSame(await statuses(key), [401, 401, 401], 'a revoked API key')
    t.strictSame(await statuses(token), [200, 200, 200])
    await updateUser(a, id, { disabled: true })
    t.strictSame(await statuses(token), [401, 401, 401], 'a disabled user')
  }
  t.equal(await metric(a, 'gatehouse_caching_processes'), 3)
  t.equal(await metric(a, 'gatehouse_lapsed_leases_total'), 0)
  t.ok((await metric(a, 'gatehouse_revocation_wait_seconds_count')) >= 30)
})

t.test('a revoked admin key is refused in every process', async t => {
  const { apps } = await several(t)
  const [a, b] = apps
  const payload = { name: 'reads', scopes: ['users:read'] }
  const created = await a.inject({ method: 'POST', url: '/admin/keys', headers: asAdmin, payload })
  const { adminKey, key } = created.json() as { adminKey: string; key: { id: string } }
  const status = async (app: FastifyInstance) =>
    (await app.inject({ url: '/admin/users', headers: { 'x-admin-key': adminKey } })).statusCode
  t.strictSame([await status(a), await status(b)], [200, 200])
  await a.inject({ method: 'DELETE', url: `/admin/keys/${key.id}`, headers: asAdmin })
  t.strictSame([await status(a), await status(b)], [401, 401])
})

/** Says whether a change waits for other processes, by the tokens that it notifies. */
const waitsAt = async (t: Test, url: string) => {
  const tokens: string[] = []
  const listener = new pg.Client({ connectionString: url })
  listener.on('notification', ({ payload = '' }) => tokens.push(payload))
  await listener.connect()
  t.teardown(() => listener.end())
  await listener.query('LISTEN gatehouse_confirmations')
  return async (change: () => Promise<unknown>): Promise<boolean> => {
    const before = tokens.length
    await change()
    await listener.query('SELECT 1')
    return tokens.length > before
  }
}

t.test('only what may take access away waits for the other processes', async t => {
  const { url, apps } = await several(t)
  const [a] = apps
  const waits = await waitsAt(t, url)
  const { email, token, id } = await signUp(a)
  const change = (payload: Record<string, unknown>) => () => updateUser(a, id, payload)
  t.notOk(await waits(change({ firstName: 'Ada' })), 'a name')
  t.notOk(await waits(() => signIn(a, email)), 'a sign-in')
  t.ok(await waits(change({ roles: ['editor'] })), 'roles')
  t.ok(await waits(change({ roles: ['editor'] })), 'the same roles: another request may still wait')
  t.ok(await waits(change({ appMetadata: { plan: 'free' } })), 'what administrators store')
  const payload = { currentPassword: PASSWORD, newPassword: 'another rather long phrase 8' }
  t.ok(
    await waits(() => a.inject({ method: 'PUT', url: '/account/password', headers: bearer(token), payload })),
    'a password',
  )
  const owner = await signUp(a)
  const { id: organizationId } = await organizationOf(a, owner)
  const setRoles = (roles: readonly string[]) => () => addMember(a, organizationId, id, roles)
  t.notOk(await waits(setRoles(['admin'])), 'a new membership')
  t.ok(await waits(setRoles(['member'])), 'roles in an organization')
  t.ok(await waits(setRoles(['member'])), 'the same roles: another request may still wait')
  const removeFactors = () =>
    a.inject({ method: 'DELETE', url: `/admin/users/${id}/factors`, headers: asAdmin })
  t.ok(await waits(removeFactors), 'factors, also where none is left')
})

t.test('a repeated deletion waits too: the first one may not have ended yet', async t => {
  const { url, apps } = await several(t)
  const [a] = apps
  const waits = await waitsAt(t, url)
  const user = await signUp(a)
  const { id: other } = await signUp(a)
  const { id: organization } = await organizationOf(a, user)
  await addMember(a, organization, other, ['member'])
  const { apiKey } = await addKey(a, user.token)
  const second = (await signIn(a, user.email)).json() as { accessToken: string }
  const sessions = await a.inject({ url: '/account/sessions', headers: bearer(second.accessToken) })
  const [session] = sessions.json().results.filter(({ current }: { current: boolean }) => !current)
  const payload = { name: 'reads', scopes: ['users:read'] }
  const { key } = (await a.inject({ method: 'POST', url: '/admin/keys', headers: asAdmin, payload })).json()
  const headers = bearer(second.accessToken)
  const deletions = [
    { url: `/account/api-keys/${apiKey.id}`, headers },
    { url: `/account/sessions/${session.id}`, headers },
    { url: `/admin/organizations/${organization}/members/${other}`, headers: asAdmin },
    { url: `/admin/organizations/${organization}`, headers: asAdmin },
    { url: `/admin/users/${user.id}`, headers: asAdmin },
    { url: `/admin/keys/${key.id}`, headers: asAdmin },
  ]
  for (const deletion of deletions) {
    const statuses: number[] = []
    const remove = async () => statuses.push((await a.inject({ method: 'DELETE', ...deletion })).statusCode)
    t.ok(await waits(remove), deletion.url)
    t.ok(await waits(remove), `${deletion.url}, repeated`)
    t.match(statuses, [/20[04]/, 404], deletion.url)
  }
})

t.test('REVOCATION_WAIT=off: no process is waited for', async t => {
  const { url, apps } = await several(t, 2, { REVOCATION_WAIT: 'off' })
  const [a, b] = apps
  const { token } = await signUp(a)
  t.equal(await accountStatus(b, token), 200)
  await a.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(token) })
  t.equal(
    await until(
      () => accountStatus(b, token),
      status => status === 401,
      BOUND,
    ),
    401,
    'it follows',
  )
  t.strictSame(
    (await leasesOf(url)).map(({ confirmed }) => confirmed),
    ['', ''],
  )
})

t.test('a process that does not confirm costs one write until its lease has ended', async t => {
  const log = logCapture()
  const url = await newDatabase(t)
  const app = await build(t, { env: { DATABASE_URL: url }, logStream: log.stream })
  await until(
    () => leasesOf(url),
    leases => leases.length === 1,
    BOUND,
  )
  await query(url, `INSERT INTO process_leases (id, confirmed, renewals) VALUES ('host:1:killed', '', 7)`)
  const revoke = async (): Promise<number> => {
    const { token } = await signUp(app)
    const begin = performance.now()
    await app.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(token) })
    return performance.now() - begin
  }
  const first = await revoke()
  t.ok(first >= 549, `it waited for ${first} ms`)
  await until(
    () => leasesOf(url),
    leases => leases.length === 1,
    BOUND,
  )
  t.equal(await metric(app, 'gatehouse_lapsed_leases_total'), 1)
  t.match(log.problems(), [{ msg: /host:1:killed did not confirm a revocation/ }])
  await revoke()
  t.equal(await metric(app, 'gatehouse_lapsed_leases_total'), 1, 'nothing is left to wait for')
})

t.test('a process that stops takes its lease with it', async t => {
  const { url, apps } = await several(t)
  const [a, b] = apps
  await b.close()
  t.equal((await leasesOf(url)).length, 1)
  await a.close()
  t.strictSame(await leasesOf(url), [])
})

t.test('beside a process of a release without leases, a revocation waits for its bound', async t => {
  const { url, apps } = await several(t, 1)
  const [a] = apps
  const earlier = new pg.Client({ connectionString: url })
  await earlier.connect()
  t.teardown(() => earlier.end())
  await earlier.query(`SELECT 'gatehouse_changes' IN (SELECT pg_listening_channels()) AS "isListening"`)
  const [before] = await leasesOf(url)
  // Two renewals: the first one may have begun before.
  await until(
    async () => Number((await leasesOf(url))[0]?.renewals),
    renewals => renewals > Number(before?.renewals) + 1,
    BOUND,
  )
  const { token } = await signUp(a)
  const begin = performance.now()
  await a.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(token) })
  const elapsed = performance.now() - begin
  t.ok(elapsed >= 999, `it waited for ${elapsed} ms`)
})

t.test('a process that has not renewed its lease yet asks whether there is an earlier release', async t => {
  const elapsedWith = async (read: () => Promise<readonly object[]>): Promise<number> => {
    const own = new ProcessLeases(read as ConstructorParameters<typeof ProcessLeases>[0])
    const begin = performance.now()
    await own.begin().confirmed([])
    return performance.now() - begin
  }
  const beside = await elapsedWith(async () => [{ hasEarlierRelease: true }])
  t.ok(beside >= 999, `it waited for ${beside} ms`)
  const unknown = await elapsedWith(() => Promise.reject(new Error('the connection is lost')))
  t.ok(unknown >= 999, `without a response it waited for ${unknown} ms`)
  const alone = await elapsedWith(async () => [{ hasEarlierRelease: false }])
  t.ok(alone < 999, `it waited for ${alone} ms`)
})

t.test('a lease is compared with the clock at each use, before any timer can run', async t => {
  const storage = await openPostgresStorage(await newDatabase(t), 1, allFeatures())
  t.teardown(() => storage.close())
  const { promise: isConnected, resolve } = Promise.withResolvers<void>()
  const states: boolean[] = []
  storage.subscribe({
    invalidate: () => undefined,
    invalidateAll: () => undefined,
    setFeedConnected: connected => connected && resolve(),
    setFeedLate: isLate => states.push(isLate),
    closed: () => undefined,
  })
  await isConnected
  const before = states.length
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600)
  storage.deliverInvalidations()
  t.strictSame(states.slice(before), [true])
})

t.test('a commit whose wait for the standby is canceled is not acknowledged', async t => {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  await query(server.url, "ALTER SYSTEM SET synchronous_standby_names = 'absent'")
  await query(server.url, 'SELECT pg_reload_conf()')
  const source = { url: server.url, check: ignore, startSearch: ignore, onSwitch: ignore }
  const options = { invalidate: ignore, hasLease: () => true, waits: false, onLapse: ignore }
  const database = new Database(source, 1, options)
  t.teardown(() => database.close())
  await until(
    async () => (await query(server.url, 'SHOW synchronous_standby_names'))[0]?.synchronous_standby_names,
    names => names === 'absent',
    BOUND,
  )
  const proof = database.read(PROOF_OF_PRIMARY).then(
    () => 'acknowledged',
    () => 'unknown',
  )
  const cancel = `SELECT pg_cancel_backend(pid) AS canceled FROM pg_stat_activity WHERE wait_event = 'SyncRep'`
  await until(
    () => query(server.url, cancel),
    canceled => canceled.length > 0,
    BOUND,
  )
  t.equal(await proof, 'unknown', 'although the server reports success, with a warning')
})

t.test('the order of tokens', async t => {
  let leases: { id: string; confirmed: string; renewals: number }[] = []
  const own = new ProcessLeases(async <Row extends object>() => leases as object[] as Row[])
  own.renewed({ hasEarlierRelease: false })
  const waiting = (token: string, confirmed: string) => {
    const write = own.begin()
    const name = /NOTIFY gatehouse_confirmations, '(.*?)'/.exec(write.commit)?.[1] ?? ''
    leases = [{ id: 'other', confirmed, renewals: 1 }]
    return { name, done: write.confirmed(leases), token }
  }
  const isDone = (done: Promise<void>) =>
    Promise.race([done.then(() => true), until(() => false, Boolean, 60)])

  t.test('a later token confirms a write', async t => {
    const { done, name } = waiting('first', '')
    own.received('before')
    own.received(name)
    own.received('after')
    leases = [{ id: 'other', confirmed: 'after', renewals: 1 }]
    await done
    t.pass()
  })
  t.test('an earlier token does not, nor one that is not known', async t => {
    const { done, name } = waiting('second', '')
    own.received('before')
    own.received(name)
    for (const confirmed of ['before', 'unknown']) {
      leases = [{ id: 'other', confirmed, renewals: 1 }]
      t.equal(await isDone(done), false)
    }
    leases = [{ id: 'other', confirmed: name, renewals: 1 }]
    await done
  })
  t.test('a process whose row is gone is not waited for', async t => {
    const { done } = waiting('third', '')
    leases = []
    await done
    t.pass()
  })
})
