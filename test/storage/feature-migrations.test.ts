/** Migrations of features, as SQL and as functions of Kysely, and their checksums (docs/design.md, "Features"). */
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import t, { type Test } from 'tap'
import { schemaOf } from '#core/store/migrations'
import { openDatabase } from '#storage/sqlite/database'
import { migrate } from '#storage/sqlite/migrate'
import type { FeatureMigration, StoredFeature } from '#storage/stored-feature'
import { temporaryFolder } from '../support/build.ts'

// biome-ignore lint/suspicious/noExplicitAny: tables that no interface declares
type Db = Kysely<any>

const CREATE: FeatureMigration = {
  sql: ({ text }) => [
    `create table "things" ("id" ${text} primary key, "size" integer)`,
    'create index "things_by_size" on "things" ("size")',
  ],
}

/** Each is the same as {@link CREATE}. */
const SAME: Readonly<Record<string, FeatureMigration>> = {
  'other lines': {
    sql: ({ text }) => [
      `
      create table "things" (
        "id" ${text} primary key,
        "size" integer
      )`,
      'create index "things_by_size"\n  on "things" ("size")',
    ],
  },
  'a function': {
    async up(db, { text }) {
      await db.schema
        .createTable('things')
        .addColumn('id', text, column => column.primaryKey())
        .addColumn('size', 'integer')
        .execute()
      await db.schema.createIndex('things_by_size').on('things').column('size').execute()
    },
  },
}

/** None is the same as {@link CREATE}. */
const OTHERS: Readonly<Record<string, FeatureMigration>> = {
  'another column': { sql: () => ['create table "things" ("id" text primary key, "sizes" integer)'] },
  'fewer statements': { sql: () => ['create table "things" ("id" text primary key, "size" integer)'] },
  'a function with another type': {
    async up(db, { text }) {
      await db.schema.createTable('things').addColumn('id', text).execute()
    },
  },
}

const feature = (migrations: Readonly<Record<string, FeatureMigration>>): StoredFeature => ({
  name: 'things',
  module: import.meta.url,
  migrations,
})

const fileOf = (t: Test): string => join(temporaryFolder(t), 'test.db')

const thingsIn = (t: Test, file: string): unknown[] => {
  const db = openDatabase(file, 1_000)
  t.teardown(() => db.close())
  return db.prepare('SELECT id, size FROM things ORDER BY id').all()
}

t.test('the form and the lines of a migration may change after it ran, the statements may not', async t => {
  const file = fileOf(t)
  await migrate(file, schemaOf([feature({ '0001_things': CREATE })]))
  for (const same of Object.values(SAME)) await migrate(file, schemaOf([feature({ '0001_things': same })]))
  for (const [what, other] of Object.entries(OTHERS))
    await t.rejects(
      migrate(file, schemaOf([feature({ '0001_things': other })])),
      /was changed after it ran/,
      what,
    )
})

t.test('values of statements, in SQL and in functions; rows that a function reads', async t => {
  const file = fileOf(t)
  const insert = 'insert into "things" ("id", "size") values ($1, $2)'
  const migrations: Record<string, FeatureMigration> = {
    '0001_things': CREATE,
    '0002_sql': { sql: () => [{ text: insert, values: ['a', 1] }] },
    '0003_function': {
      async up(db: Db) {
        await db.insertInto('things').values({ id: 'b', size: 2 }).execute()
      },
    },
    '0004_rows': {
      async up(db: Db) {
        for (const { id, size } of await db.selectFrom('things').selectAll().execute())
          await db
            .updateTable('things')
            .set({ size: size * 10 })
            .where('id', '=', id)
            .execute()
        let last = ''
        for await (const { id } of db.selectFrom('things').selectAll().orderBy('id').stream()) last = id
        await db
          .insertInto('things')
          .values({ id: `${last} again` })
          .execute()
      },
    },
  }
  await migrate(file, schemaOf([feature(migrations)]))
  const things = [
    { id: 'a', size: 10 },
    { id: 'b', size: 20 },
    { id: 'b again', size: null },
  ]
  t.strictSame(thingsIn(t, file), things)
  const kept = { ...migrations, '0002_sql': { sql: () => [{ text: insert, values: ['c', 3] }] } }
  await migrate(file, schemaOf([feature(kept)]))
  t.strictSame(thingsIn(t, file), things, 'values may be timestamps and new ids')
})

t.test('a migration that fails, or begins a transaction, leaves nothing behind', async t => {
  const failing: Readonly<Record<string, FeatureMigration>> = {
    'is no SQL': { sql: () => ['create tables'] },
    'begins a transaction': {
      async up(db: Db) {
        await db.transaction().execute(async inner => inner.schema.dropTable('things').execute())
      },
    },
  }
  for (const [what, migration] of Object.entries(failing)) {
    const file = fileOf(t)
    const features = [feature({ '0001_things': CREATE, '0002_failing': migration })]
    await t.rejects(
      migrate(file, schemaOf(features)),
      /The migration 0002_failing of the feature things failed: /,
      what,
    )
    t.throws(() => thingsIn(t, file), /no such table/)
  }
})

t.test('a migration of the core that another branch numbered in the middle runs', async t => {
  const file = fileOf(t)
  await migrate(file, schemaOf())
  const db = openDatabase(file, 1_000)
  t.teardown(() => db.close())
  db.exec("ALTER TABLE users DROP COLUMN locale; DELETE FROM kysely_migration WHERE name = '0012_locale'")
  await migrate(file, schemaOf())
  t.strictSame(db.prepare('SELECT locale FROM users').all(), [])
})
