/** The databases of released versions, as `npm run record-release` stored them, are migrated at start (CHANGELOG 0.2.0). */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { accountOf, call } from '../support/account-routes.ts'
import { getEvents } from '../support/admin-routes.ts'
import { build, type Context, PASSWORD, signIn, temporaryFolder } from '../support/build.ts'
import { createDatabase, query } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { IMPORTED_PASSWORD, type Recorded, recordedSessions, recordedUsers } from './scenario.ts'

const MINUTE = 60_000

const RESTORE = {
  async sqlite(t: Context, folder: string): Promise<string> {
    const file = join(temporaryFolder(t), 'release.db')
    writeFileSync(file, gunzipSync(readFileSync(join(folder, 'sqlite.db.gz'))))
    return `sqlite:${file}`
  },
  async postgres(t: Context, folder: string): Promise<string> {
    const url = await createDatabase(t)
    await query(url, readFileSync(join(folder, 'postgres.sql'), 'utf8'))
    return url
  },
}

const releases = readdirSync(import.meta.dirname, { withFileTypes: true })
  .filter(entry => entry.isDirectory())
  .map(({ name }) => name)

t.test('every version in the changelog from 0.2.0 on has a recorded database', async t => {
  const changelog = readFileSync(join(import.meta.dirname, '..', '..', 'CHANGELOG.md'), 'utf8')
  const versions = [...changelog.matchAll(/^## \[(\d+\.\d+\.\d+)\]/gm)].map(([, version]) => version)
  t.same(releases.sort(), versions.filter(version => version !== '0.1.0').sort())
})

for (const release of releases)
  for (const engine of ['sqlite', 'postgres'] as const)
    t.test(`a database of ${release} on ${engine} keeps its data and goes on`, async t => {
      const folder = join(import.meta.dirname, release)
      const expected: Record<typeof engine, Recorded> = JSON.parse(
        readFileSync(join(folder, 'expected.json'), 'utf8'),
      )
      const { at, users, events, cursor, sessions, tokens } = expected[engine]
      const DATABASE_URL = await RESTORE[engine](t, folder)
      const app = await build(t, { env: { DATABASE_URL }, realHashing: true, clock: () => at + MINUTE })

      t.match(await recordedUsers(app), users, 'users')
      const stored = (await getEvents(app, { limit: 100 })).json().results
      t.same(
        stored.toSorted((a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)),
        events.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
        'the audit log',
      )
      const current = { current: true, lastRequestAt: new Date(at + MINUTE).toISOString() }
      t.match(
        await recordedSessions(app, tokens.active),
        sessions.map(session =>
          (session as { current: boolean }).current ? { ...(session as object), ...current } : session,
        ),
        'sessions',
      )
      t.match(await accountOf(app, tokens.active), { email: 'ann@example.com', lastName: 'Ångström' })
      t.match(await accountOf(app, tokens.impersonated), { email: 'ann@example.com' })
      for (const token of [tokens.signedOut, tokens.disabled])
        t.same(Object.keys(await accountOf(app, token)), ['errors'], 'a revoked token stays revoked')
      t.equal((await signIn(app, 'ann@example.com')).statusCode, 200)
      t.equal((await signIn(app, 'cat@example.com', IMPORTED_PASSWORD)).statusCode, 200)
      t.equal((await signIn(app, 'ben@example.com')).statusCode, 403)

      const confirmed = await call(app, 'POST', '/account/verify-email', {
        token: tokens.emailChange,
        password: PASSWORD,
      })
      t.match(confirmed.json(), { email: 'ann.new@example.com', emailVerified: true })
      const payload = { token: tokens.passwordReset, password: `${PASSWORD} again` }
      t.equal(
        (await call(app, 'POST', '/account/reset-password', payload)).statusCode,
        400,
        'the changed e-mail has invalidated the reset',
      )
      const added = await call(app, 'POST', '/account/sign-up', {
        email: 'eve@example.com',
        password: PASSWORD,
      })
      t.equal(added.statusCode, 201)
      // On PostgreSQL, transactions of other databases on the server delay the end of the log.
      const later = await until(
        async () => (await getEvents(app, { sort: 'at', cursor, limit: 100 })).json().results,
        found => found.length === 4,
        MINUTE,
      )
      t.match(
        later.map(({ type }: { type: string }) => type),
        ['user.signed-in', 'user.signed-in', 'email.changed', 'user.signed-up'],
        'the cursor goes on',
      )
    })
