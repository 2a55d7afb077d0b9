/**
 * Which starts load the migrations of SQLite (docs/design.md, "Start and idle memory"): those that find another schema than the one of this
 * version.
 */

import { join } from 'node:path'
import t from 'tap'
import type { Feature } from '#feature/declaration'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { MIGRATIONS } from '#storage/migrations/known-schema'
import { migrations } from '#storage/migrations/list'
import { openDatabase } from '#storage/sqlite/database'
import { ensureSchema } from '#storage/sqlite/ensure-schema'
import { migrate, SQLITE_DIALECT } from '#storage/sqlite/migrate'
import { notes } from '../../examples/notes/notes.ts'
import { temporaryFolder } from '../support/build.ts'
import { CHECKSUMS, checksumsOf, loadsQueryBuilder } from '../support/known-schema.ts'

/** Without those of `src/features/own.ts`, which a fork adds. */
const builtIn: readonly Feature[] = BUILT_IN_FEATURES

const fileOf = (t: Parameters<typeof temporaryFolder>[0]): string => join(temporaryFolder(t), 'test.db')

t.test('the known schema is what the migrations record', async t => {
  const file = fileOf(t)
  await migrate(file, builtIn)
  const db = openDatabase(file, 0)
  t.teardown(() => db.close())
  const names = db.prepare<[], string>('SELECT name FROM kysely_migration ORDER BY name').pluck().all()
  t.strictSame(names, [...MIGRATIONS])
  t.strictSame(names, Object.keys(migrations(SQLITE_DIALECT)).sort())
  const rows = db
    .prepare<[], Record<'feature' | 'name' | 'checksum', string>>(
      'SELECT feature, name, checksum FROM feature_migrations',
    )
    .all()
  t.strictSame(checksumsOf(rows), CHECKSUMS.sqlite)
})

const open = (added: '' | 'notes'): string => `
const { ensureSchema } = await import('./src/storage/sqlite/ensure-schema.ts')
await ensureSchema(process.env.DATABASE, [...BUILT_IN_FEATURES, ${added}])`
const OPEN = open('')

t.test('a start that finds this schema does not load the query builder, any other start does', async t => {
  const file = fileOf(t)
  t.equal(loadsQueryBuilder(OPEN, file), true, 'a missing file')
  t.equal(loadsQueryBuilder(OPEN, file), false, 'an up-to-date file')
  const changes = [
    "DELETE FROM feature_migrations WHERE feature = 'totp'; DROP TABLE totp; DROP TABLE recovery_codes",
    'PRAGMA user_version = 0',
    // As 0.2.0 leaves a database.
    'DROP TABLE migrated_features',
  ]
  for (const change of changes) {
    const db = openDatabase(file, 0)
    db.exec(change)
    db.close()
    t.equal(loadsQueryBuilder(OPEN, file), true, change)
    t.equal(loadsQueryBuilder(OPEN, file), false, 'migrated')
  }
})

t.test('nor does a start with a feature of a team, whose migrations have run', async t => {
  const file = fileOf(t)
  await migrate(file, builtIn)
  t.equal(loadsQueryBuilder(open('notes'), file), true, 'its first start')
  t.equal(loadsQueryBuilder(open('notes'), file), false, 'its second start')
  t.equal(loadsQueryBuilder(open(''), file), false, 'a start without it')
  t.equal(loadsQueryBuilder(open('notes'), file), false, 'a start with it again')
})

t.test('what differs from this version is migrated or reported', async t => {
  const file = fileOf(t)
  await ensureSchema(file, builtIn)
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

  await ensureSchema(file, [...builtIn, notes])
  t.strictSame(tables(), ['notes'], 'a feature of a team')

  const [first = builtIn[0]] = builtIn
  const { up } = Object.values(first?.migrations ?? {})[0] ?? {}
  const more = {
    ...first,
    migrations: { ...first?.migrations, '0000_new': { up } },
  } as (typeof builtIn)[number]
  await t.rejects(ensureSchema(file, [more]), /0000_new .* is new, but sorts before/)

  const name = first?.name ?? ''
  change('UPDATE feature_migrations SET checksum = ? WHERE feature = ?', 'x', name)
  await t.rejects(ensureSchema(file, builtIn), /was changed after it ran/)
  change(
    'UPDATE feature_migrations SET checksum = ? WHERE feature = ?',
    Object.values(CHECKSUMS.sqlite[name] ?? {})[0] ?? '',
    name,
  )
  await ensureSchema(file, builtIn)

  change("INSERT INTO feature_migrations VALUES (?, '9999_later', 'x', 0)", name)
  await t.rejects(ensureSchema(file, builtIn), /9999_later .* this version does not have it/)
  change("DELETE FROM feature_migrations WHERE name = '9999_later'")

  change("INSERT INTO kysely_migration VALUES ('9999_later', '2026-01-01')")
  await t.rejects(ensureSchema(file, builtIn), { message: /^the database .*9999_later/ })
})
