/** The schema of PostgreSQL: its migrations, and which starts run or load them (docs/design.md, "Start and idle memory"). */
import t from 'tap'
import type { AccountFeature } from '#core/store/account-feature'
import { coreMigrations } from '#core/store/migrations'
import { openPostgresStorage } from '#core/store/postgres'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { notes } from '../../examples/notes/notes.ts'
import { CHECKSUMS, checksumsOf, loadsQueryBuilder } from '../support/known-schema.ts'
import { createDatabase, query } from '../support/postgres.ts'

/** Without those of `src/features/own.ts`, which a fork adds. */
const builtIn: readonly AccountFeature[] = BUILT_IN_FEATURES

const start = async (url: string, features: readonly AccountFeature[]): Promise<void> => {
  const storage = await openPostgresStorage(url, 1, features)
  await storage.close()
}

t.test('the known schema is what the migrations record', async t => {
  const url = await createDatabase(t)
  await start(url, builtIn)
  const names = await query(url, 'SELECT name FROM kysely_migration')
  t.strictSame(names.map(({ name }) => name).sort(), [...coreMigrations('postgres').keys()])
  const rows = await query(url, 'SELECT feature, name, checksum FROM feature_migrations')
  t.strictSame(checksumsOf(rows), CHECKSUMS.postgres)
})

const open = (added: string): string => `
const { openPostgresStorage } = await import('./src/core/store/postgres.ts')
const storage = await openPostgresStorage(process.env.DATABASE, 1, [...BUILT_IN_FEATURES, ${added}])
await storage.close()`

t.test('a start that finds this schema writes nothing, any other start migrates', async t => {
  const url = await createDatabase(t)
  await start(url, builtIn)
  const recorded = () =>
    query(
      url,
      `SELECT feature, name, checksum FROM feature_migrations
       UNION ALL SELECT feature, NULL, fingerprint FROM migrated_features ORDER BY 1, 2`,
    )
  const migrated = await recorded()
  const written = () => query(url, 'SELECT feature, xmin FROM migrated_features ORDER BY 1')
  const before = await written()
  await start(url, builtIn)
  t.strictSame(await written(), before)
  const changes = [
    `DELETE FROM feature_migrations WHERE feature = 'totp'; DROP TABLE totp; DROP TABLE recovery_codes`,
    // As 0.2.0 leaves a database.
    'DROP TABLE migrated_features',
  ]
  for (const change of changes) {
    await query(url, change)
    await start(url, builtIn)
    t.strictSame(await recorded(), migrated, change)
  }
})

t.test('only a migration that is a function loads Kysely', async t => {
  const url = await createDatabase(t)
  t.equal(loadsQueryBuilder(open(''), url), false, 'an empty database')
  t.equal(loadsQueryBuilder(open('notes'), url), false, 'SQL of a team')
  t.equal(loadsQueryBuilder(open('things'), url), true, 'a function, which runs')
  t.equal(loadsQueryBuilder(open('things'), url), true, 'a function that has run')
  t.equal(loadsQueryBuilder(open(''), url), false, 'a start without it')
})

t.test('what differs from this version is migrated or reported', async t => {
  const url = await createDatabase(t)
  await start(url, builtIn)
  await start(url, [...builtIn, notes])
  t.strictSame(await query(url, `SELECT to_regclass('notes')::text AS name`), [{ name: 'notes' }])

  const totp = CHECKSUMS.postgres.totp?.['0001_totp']
  const change = (checksum: string | undefined) =>
    query(url, `UPDATE feature_migrations SET checksum = '${checksum}' WHERE feature = 'totp'`)
  await change('x')
  await t.rejects(start(url, builtIn), /^the database: .*was changed after it ran/)
  await change(totp)
  await start(url, builtIn)

  await query(url, `INSERT INTO feature_migrations VALUES ('totp', '9999_later', 'x', 0)`)
  await t.rejects(start(url, builtIn), /9999_later .* this version does not have it/)
  await query(url, `DELETE FROM feature_migrations WHERE name = '9999_later'`)

  await query(url, `INSERT INTO kysely_migration VALUES ('9999_later', '2026-01-01')`)
  await t.rejects(start(url, builtIn), { message: /^the database: .*9999_later/ })
})
