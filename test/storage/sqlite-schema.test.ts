/** The schema of SQLite: its migrations, and which starts run or load them (docs/design.md, "Start and idle memory"). */
import { join } from 'node:path'
import t from 'tap'
import { coreMigrations, schemaOf } from '#core/store/migrations'
import type { Feature } from '#feature/declaration'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { type Connection, openDatabase } from '#storage/sqlite/database'
import { ensureSchema, migrate } from '#storage/sqlite/migrate'
import { notes } from '../../examples/notes/notes.ts'
import { temporaryFolder } from '../support/build.ts'
import { CHECKSUMS, checksumsOf, loadsQueryBuilder } from '../support/known-schema.ts'

/** Without those of `src/features/own.ts`, which a fork adds. */
const builtIn: readonly Feature[] = BUILT_IN_FEATURES

const fileOf = (t: Parameters<typeof temporaryFolder>[0]): string => join(temporaryFolder(t), 'test.db')

t.test('the known schema is what the migrations record', async t => {
  const file = fileOf(t)
  await migrate(file, schemaOf(builtIn))
  const db = openDatabase(file, 0)
  t.teardown(() => db.close())
  const names = db.prepare<[], string>('SELECT name FROM kysely_migration ORDER BY name').pluck().all()
  t.strictSame(names, [...coreMigrations('sqlite').keys()])
  const rows = db
    .prepare<[], Record<'feature' | 'name' | 'checksum', string>>(
      'SELECT feature, name, checksum FROM feature_migrations',
    )
    .all()
  t.strictSame(checksumsOf(rows), CHECKSUMS.sqlite)
})

const open = (added: string): string => `
const { ensureSchema } = await import('./src/storage/sqlite/migrate.ts')
const { schemaOf } = await import('./src/core/store/migrations.ts')
await ensureSchema(process.env.DATABASE, schemaOf([...BUILT_IN_FEATURES, ${added}]))`

t.test('a start that finds this schema takes no lock, any other start migrates', async t => {
  const file = fileOf(t)
  await ensureSchema(file, schemaOf(builtIn))
  const connected = <Result>(work: (db: Connection) => Result): Result => {
    const db = openDatabase(file, 0)
    const result = work(db)
    db.close()
    return result
  }
  const recorded = () =>
    connected(db => [
      db.prepare('SELECT feature, name, checksum FROM feature_migrations ORDER BY 1, 2').all(),
      db.prepare('SELECT * FROM migrated_features ORDER BY 1').all(),
      db.pragma('user_version', { simple: true }) !== 0,
    ])
  const migrated = recorded()
  const changes = [
    "DELETE FROM feature_migrations WHERE feature = 'totp'; DROP TABLE totp; DROP TABLE recovery_codes",
    'PRAGMA user_version = 0',
    // As 0.2.0 leaves a database.
    'DROP TABLE migrated_features',
    "DELETE FROM migrated_features WHERE feature = 'totp'",
  ]
  for (const change of changes) {
    connected(db => db.exec(change))
    await ensureSchema(file, schemaOf(builtIn))
    t.strictSame(recorded(), migrated, change)
  }
  const db = openDatabase(file, 0)
  t.teardown(() => db.close())
  db.exec('BEGIN IMMEDIATE')
  await ensureSchema(file, schemaOf(builtIn))
})

t.test('only a migration that is a function loads Kysely', async t => {
  const file = fileOf(t)
  t.equal(loadsQueryBuilder(open(''), file), false, 'a missing file')
  t.equal(loadsQueryBuilder(open('notes'), file), false, 'SQL of a team')
  t.equal(loadsQueryBuilder(open('things'), file), true, 'a function, which runs')
  t.equal(loadsQueryBuilder(open('things'), file), true, 'a function that has run')
  t.equal(loadsQueryBuilder(open(''), file), false, 'a start without it')
})

t.test('what differs from this version is migrated or reported', async t => {
  const file = fileOf(t)
  await ensureSchema(file, schemaOf(builtIn))
  const change = (statement: string, ...values: readonly string[]): void => {
    const db = openDatabase(file, 0)
    db.prepare(statement).run(...values)
    db.close()
  }
  const tables = (): unknown[] => {
    const db = openDatabase(file, 0)
    const names = db.prepare("SELECT name FROM sqlite_schema WHERE name = 'notes'").pluck().all()
    db.close()
    return names
  }

  await ensureSchema(file, schemaOf([...builtIn, notes]))
  t.strictSame(tables(), ['notes'], 'a feature of a team')

  const [first = builtIn[0]] = builtIn
  const more = {
    ...first,
    migrations: { ...first?.migrations, '0000_new': { sql: () => [] } },
  } as (typeof builtIn)[number]
  await t.rejects(ensureSchema(file, schemaOf([more])), /0000_new .* is new, but sorts before/)

  const name = first?.name ?? ''
  change('UPDATE feature_migrations SET checksum = ? WHERE feature = ?', 'x', name)
  await t.rejects(ensureSchema(file, schemaOf(builtIn)), /was changed after it ran/)
  change(
    'UPDATE feature_migrations SET checksum = ? WHERE feature = ?',
    Object.values(CHECKSUMS.sqlite[name] ?? {})[0] ?? '',
    name,
  )
  await ensureSchema(file, schemaOf(builtIn))

  change("INSERT INTO feature_migrations VALUES (?, '9999_later', 'x', 0)", name)
  await t.rejects(ensureSchema(file, schemaOf(builtIn)), /9999_later .* this version does not have it/)
  change("DELETE FROM feature_migrations WHERE name = '9999_later'")

  change("INSERT INTO kysely_migration VALUES ('9999_later', '2026-01-01')")
  await t.rejects(ensureSchema(file, schemaOf(builtIn)), { message: /^the database .*9999_later/ })
})
