/** `npm run cli -- copy` in all directions: the copied service goes on where the source ended (docs/design.md, "Storage"). */
import { join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { allFeatures } from '#features/built-in'
import { openDatabase } from '#storage/sqlite/database'
import { fill, recordedSessions, recordedUsers } from '../releases/scenario.ts'
import { accountOf, call, reset } from '../support/account-routes.ts'
import { createKey as createAdminKey, listStatus, revokeKey } from '../support/admin-keys.ts'
import { getEvents, impersonate } from '../support/admin-routes.ts'
import { ENCRYPTION_KEY, signInWith } from '../support/authenticator-apps.ts'
import {
  asAdmin,
  bearer,
  build,
  confirmedUser,
  freshEmail,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  temporaryFolder,
} from '../support/build.ts'
import { contentOf, copyStore, makeSource } from '../support/copies.ts'
import { mailbox } from '../support/mailbox.ts'
import { adminCall, call as callOrganization, team } from '../support/organizations.ts'
import { ENV, listPasskeys, register, signInWith as signInWithPasskey } from '../support/passkeys.ts'
import { createDatabase, newDatabase, query } from '../support/postgres.ts'
import { inShortRun } from '../support/run.ts'
import { execute, select } from '../support/stored-rows.ts'
import { until } from '../support/until.ts'

type Engine = 'sqlite' | 'postgres'

/** A database that does not exist yet, or is not migrated. */
const EMPTY: Readonly<Record<Engine, (t: Test) => Promise<string>>> = {
  sqlite: async t => `sqlite:${join(temporaryFolder(t), 'test.db')}`,
  postgres: createDatabase,
}

/** Names that array literals, decoders or normalisers could change. */
const NAMES = [
  'Zoe\u0308',
  '{"a",\\b}',
  "O'Neill \\' --",
  'x\u{10ffff}',
  'a\u2003b\u200dc',
  'NULL',
  'ß'.repeat(128),
]

const ALL_DIRECTIONS: readonly (readonly [Engine, Engine])[] = [
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
  ['sqlite', 'sqlite'],
  ['postgres', 'postgres'],
]

const DIRECTIONS = inShortRun(ALL_DIRECTIONS.slice(0, 3), ALL_DIRECTIONS)

for (const [from, to] of DIRECTIONS)
  t.test(`${from} to ${to}: every row, session, token, key and factor`, async t => {
    const clock = manualClock(Date.now())
    const [DATABASE_URL, url] = [await EMPTY[from](t), await EMPTY[to](t)]
    const env = { ...ENV, ENCRYPTION_KEY, WEBHOOK_ALLOWED_HOSTS: '127.0.0.1:1' }
    const source = await build(t, { clock: clock.now, env: { ...env, DATABASE_URL } })
    const { tokens, cursor } = await fill(source, clock)
    for (const firstName of NAMES) await signUp(source, { firstName, locale: 'de-CH' })
    const adminKey = await createAdminKey(source, ['users:read', 'users:impersonate'])
    const passkeys = await signUp(source)
    const { authenticator } = await register(source, passkeys.token)
    t.equal((await signInWithPasskey(source, authenticator, { counter: 50 })).statusCode, 200)
    const { owner, url: organization } = await team(source)
    const invited = freshEmail()
    const invitation = { email: invited, roles: ['member'] }
    await callOrganization(source, owner, 'POST', `${organization}/invitations`, invitation)
    const invitationToken = await mailbox(source).token(invited, 'organizationInvitation')
    const webhook = { url: 'http://127.0.0.1:1/hook' }
    t.equal((await call(source, 'POST', '/admin/webhooks', webhook, asAdmin)).statusCode, 201)
    const impersonated = (await impersonate(source, owner.id, adminKey.headers)).json().accessToken
    await call(source, 'PUT', `/admin/users/${owner.id}`, { roles: ['editor', 'author'] }, asAdmin)
    const removed = await confirmedUser(source)
    await call(source, 'DELETE', '/account', { password: PASSWORD }, bearer(removed.token))
    const [users, sessions] = [await recordedUsers(source), await recordedSessions(source, tokens.active)]
    const events = (await getEvents(source, { limit: 100 })).json().results
    const members = (await adminCall(source, 'GET', `/admin${organization}/members`)).json().results
    const lastKey = Number((await select(DATABASE_URL, 'SELECT max(key) AS key FROM users'))[0]?.key)
    await source.close()

    const progress: number[] = []
    const report = await copyStore(DATABASE_URL, url, allFeatures(), (done, total) =>
      progress.push(done, total),
    )
    const [copied, total] = progress.slice(-2)
    t.ok(copied !== undefined && copied > 100)
    t.equal(copied, total)
    t.match(report, { tables: { api_keys: 1, totp: 1, passkeys: 1, organizations: 1, webhooks: 1 } })
    const [before, after] = [await contentOf(DATABASE_URL), await contentOf(url)]
    const assigned = from === 'postgres' && to === 'sqlite'
    if (assigned)
      for (const content of [before, after])
        content.events = (content.events ?? []).map(line => line.replace(/\["position","\d+"\]/, '')).sort()
    t.strictSame(after, before)

    const target = await build(t, { clock: clock.now, env: { ...env, DATABASE_URL: url } })
    t.strictSame(await recordedUsers(target), users, 'sorted alike too')
    t.match(await recordedSessions(target, tokens.active), sessions)
    t.strictSame((await getEvents(target, { limit: 100 })).json().results, events)
    for (const token of [tokens.active, tokens.impersonated, tokens.apiKey ?? '', impersonated, owner.token])
      t.notHas(await accountOf(target, token), 'errors')
    for (const token of [tokens.signedOut, tokens.disabled, removed.token])
      t.has(await accountOf(target, token), { errors: {} }, 'revoked tokens stay revoked')
    t.equal((await signIn(target, 'ann@example.com')).statusCode, 200)
    t.equal((await signInWith(target, 'fay@example.com')).statusCode, 401)
    t.equal((await signInWith(target, 'fay@example.com', tokens.recoveryCode)).statusCode, 200)
    t.same((await listPasskeys(target, passkeys.token)).length, 1)
    t.equal((await signInWithPasskey(target, authenticator, { counter: 50 })).statusCode, 401, 'the counter')
    t.equal((await signInWithPasskey(target, authenticator, { counter: 51 })).statusCode, 200)
    t.equal((await reset(target, tokens.passwordReset, `${PASSWORD} again`)).statusCode, 200)
    t.strictSame((await adminCall(target, 'GET', `/admin${organization}/members`)).json().results, members)
    t.equal((await target.services.organizationInvitations.find(invitationToken))?.email, invited)
    t.equal(
      (await call(target, 'GET', '/admin/users?role=editor', undefined, asAdmin)).json().results.length,
      1,
    )
    t.equal(await listStatus(target, adminKey.headers), 200)
    t.equal(await revokeKey(target, adminKey.id), 204)
    t.has(await accountOf(target, impersonated), { errors: {} }, 'the sessions that the key opened')

    const last = await signUp(target)
    const [{ key } = {}] = await select(url, `SELECT key FROM users WHERE id = '${last.id}'`)
    t.ok(Number(key) > lastKey, 'keys are not assigned again')
    const follow = await getEvents(target, { sort: 'at', cursor, limit: 100 })
    if (from !== to) return void t.equal(follow.statusCode, 400, 'positions of another kind')
    const later = await until(
      async () => (await getEvents(target, { sort: 'at', cursor, limit: 100 })).json().results,
      found => found.some(({ userId }: { userId: string }) => userId === last.id),
      60_000,
    )
    t.notOk(
      later.some(({ type }: { type: string }) => type === 'user.imported'),
      'the cursor goes on',
    )
    t.ok(later.some(({ userId }: { userId: string }) => userId === owner.id))
  })

t.test('numbers are not assigned again, also when their rows are gone', async t => {
  for (const [from, to] of DIRECTIONS) {
    const [DATABASE_URL, url] = [await EMPTY[from](t), await EMPTY[to](t)]
    const source = await build(t, { env: { DATABASE_URL } })
    const { id, token } = await signUp(source)
    const [{ key } = {}] = await select(DATABASE_URL, 'SELECT key FROM users')
    const { nextCursor } = (await getEvents(source, { sort: 'at' })).json()
    await call(source, 'DELETE', '/account', { password: PASSWORD }, bearer(token))
    await source.close()
    await execute(DATABASE_URL, 'DELETE FROM events')
    await copyStore(DATABASE_URL, url)
    const target = await build(t, { env: { DATABASE_URL: url } })
    const next = await signUp(target)
    t.not(next.id, id)
    const [{ key: nextKey } = {}] = await select(url, 'SELECT key FROM users')
    t.ok(Number(nextKey) > Number(key), `${from} to ${to}`)
    if (from === to)
      t.match(
        await until(
          async () => (await getEvents(target, { sort: 'at', cursor: nextCursor })).json().results,
          ({ length }) => length > 0,
          60_000,
        ),
        [{ userId: next.id }],
      )
  }
})

t.test('a process that uses either database, or writes, is refused', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  await makeSource(file, 1)
  const [filled, url] = [await createDatabase(t), await createDatabase(t)]
  await copyStore(`sqlite:${file}`, filled)
  const refused = (from: string, to: string, message: RegExp) =>
    t.rejects(copyStore(from, to), { message }, message.source)

  const other = openDatabase(file, 0)
  other.prepare('SELECT id FROM users').get()
  await refused(`sqlite:${file}`, url, /^the source: a process uses .*test\.db: stop it, then copy$/)
  other.close()
  const app = await build(t, { env: { DATABASE_URL: filled } })
  const connected = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'gatehouse'`
  await until(
    () => query(filled, connected),
    ({ length }) => length > 0,
    60_000,
  )
  const inUse = 'a process of the service is connected to the database: stop it, then copy$'
  await refused(filled, url, new RegExp(`^the source: ${inUse}`))
  await refused(`sqlite:${file}`, filled, new RegExp(`^the target: ${inUse}`))
  await app.close()

  const client = new pg.Client({ connectionString: filled })
  await client.connect()
  t.teardown(() => client.end())
  let waiting: Promise<unknown> | undefined
  await copyStore(filled, url, allFeatures(), () => {
    waiting ??= client.query(`UPDATE users SET first_name = 'late'`)
  })
  await waiting
  t.strictSame(await query(url, 'SELECT first_name FROM users'), [{ first_name: null }], 'writes wait')
})

t.test('a target with rows, or without a column of the source, is refused and stays as it is', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  await makeSource(file, 1)
  const url = await newDatabase(t)
  await query(url, `INSERT INTO admin_keys VALUES ('a', 'b', 'c', 'd', '[]', 1, NULL, 1, NULL)`)
  const rows = /^the target: the table admin_keys has rows: a copy needs an empty database/
  await t.rejects(copyStore(`sqlite:${file}`, url), { message: rows })
  t.strictSame(await query(url, 'SELECT FROM users'), [])
  await query(url, 'DELETE FROM admin_keys')
  await execute(`sqlite:${file}`, 'ALTER TABLE totp ADD COLUMN only_here text')
  const column = /^the target: the table totp has no column only_here, which it has in the source/
  await t.rejects(copyStore(`sqlite:${file}`, url), { message: column })
  await execute(`sqlite:${file}`, 'ALTER TABLE totp DROP COLUMN only_here')
  await execute(`sqlite:${file}`, `UPDATE users SET first_name = 'a' || char(0)`)
  const value = /^the target: the table users: /
  await t.rejects(copyStore(`sqlite:${file}`, url), { message: value }, 'a value that PostgreSQL refuses')
  await execute(`sqlite:${file}`, 'UPDATE users SET first_name = NULL')
  t.match(await copyStore(`sqlite:${file}`, url), { tables: { users: 1, sessions: 1 } })
})

t.test('a source of another version, or of other features, is refused', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  await makeSource(file, 1)
  const url = await createDatabase(t)
  const from = `sqlite:${file}`
  await execute(from, `DELETE FROM feature_migrations WHERE feature = 'totp'`)
  const version = /^the source: another version of the service left it: start this version with it once/
  await t.rejects(copyStore(from, url), { message: version })
  const none = allFeatures().filter(({ name }) => name !== 'totp')
  const added = allFeatures().find(({ name }) => name === 'totp')
  if (added === undefined) throw new Error('no totp')
  await execute(from, `INSERT INTO feature_migrations VALUES ('unknown', '0001_unknown', '', 1)`)
  t.strictSame((await copyStore(from, url, none)).unknownFeatures.toSorted(), ['totp', 'unknown'])
  await t.rejects(copyStore(url, await createDatabase(t), [added]), { message: version })
})
