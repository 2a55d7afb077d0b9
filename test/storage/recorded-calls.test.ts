/** Migrations are compared by the calls that they make, where calls show everything (docs/design.md, "Start and idle memory"). */
import { type Kysely, sql } from 'kysely'
import t from 'tap'
import { allFeatures } from '#features/built-in'
import { recordedCalls } from '#storage/migrations/recorded-calls'
import type { FeatureDialect } from '#storage/migrations/schema-dialect'
import type { FeatureMigration } from '#storage/stored-feature'
import { notes } from '../../examples/notes/notes.ts'

type Up = FeatureMigration['up']
// biome-ignore lint/suspicious/noExplicitAny: tables that no interface declares
type Db = Kysely<any>

const calls = (up: Up, engine: FeatureDialect['engine'] = 'sqlite') => recordedCalls({ up }, engine)

const withDefault =
  (value: unknown): Up =>
  async db => {
    await db.schema
      .createTable('things')
      .addColumn('size', 'integer', column => column.notNull().defaultTo(value as never))
      .execute()
  }

t.test('the calls are the same each time, and show each argument', async t => {
  const values = [0, 1, 1n, '1', null, true, undefined, [1], [[1]], { a: 1 }, { a: 2 }, { b: 1 }]
  const recorded = new Set<string>()
  for (const value of values) {
    const first = await calls(withDefault(value))
    t.strictSame(await calls(withDefault(value)), first)
    recorded.add(JSON.stringify(first))
  }
  t.equal(recorded.size, values.length)
})

t.test('they show callbacks, what these return, and chains', async t => {
  const variants: readonly Up[] = [
    async (db: Db) => void (await db.updateTable('a').set({ b: 1 }).execute()),
    async (db: Db) => void (await db.updateTable('a').set({ b: 1 }).where('c', '=', 2).execute()),
    async (db: Db) =>
      void (await db
        .updateTable('a')
        .set({ b: 1 })
        .where(eb => eb('c', '=', 2))
        .execute()),
    async (db: Db) =>
      void (await db
        .updateTable('a')
        .set({ b: 1 })
        .where(eb => eb.not(eb('c', '=', 2)))
        .execute()),
    async (db: Db) =>
      void (await db
        .updateTable('a')
        .set(({ fn, val }) => ({ b: fn('f', [val(1)]) }))
        .execute()),
    async (db: Db) =>
      void (await db
        .updateTable('a')
        .set(({ fn, val }) => ({ b: fn('f', [val(2)]) }))
        .execute()),
    async (db: Db) => void (await db.transaction().execute(async inner => inner.deleteFrom('a').execute())),
    async (db: Db) => void (await db.transaction().execute(async inner => inner.deleteFrom('b').execute())),
    async (db: Db) =>
      void (await db.transaction().execute(async inner => {
        await inner.deleteFrom('b').execute()
        await inner.deleteFrom('c').execute()
      })),
    async () => undefined,
  ]
  const recorded = await Promise.all(variants.map(up => calls(up)))
  t.notOk(recorded.includes(null))
  t.equal(new Set(recorded.map(found => JSON.stringify(found))).size, variants.length)
})

t.test('they show the dialect', async t => {
  const up: Up = async (db, { engine, keyType, text }) => {
    const table = db.schema.createTable('a').addColumn('id', text).addColumn('key', keyType)
    await (engine === 'sqlite' ? table : table.temporary()).execute()
  }
  t.strictSame(await calls(up), [
    'db.schema.createTable("a")',
    '#0.addColumn("id","text")',
    '#1.addColumn("key","integer")',
    '#2.execute()',
  ])
  t.strictSame(await calls(up, 'postgres'), [
    'db.schema.createTable("a")',
    '#0.addColumn("id",text)',
    '#1.addColumn("key","bigint")',
    '#2.temporary()',
    '#3.execute()',
  ])
})

const UNKNOWN: Readonly<Record<string, Up>> = {
  'reads rows': async (db: Db) => {
    for (const { id } of await db.selectFrom('a').selectAll().execute())
      await db.deleteFrom('b').where('id', '=', id).execute()
  },
  'counts rows': async (db: Db) => {
    if ((await db.selectFrom('a').selectAll().execute()).length > 0) await db.deleteFrom('b').execute()
  },
  'reads one row': async (db: Db) => {
    if (await db.selectFrom('a').selectAll().executeTakeFirst()) await db.deleteFrom('b').execute()
  },
  'swallows what it cannot read': async (db: Db) => {
    try {
      await db.selectFrom('a').selectAll().executeTakeFirstOrThrow()
    } catch {
      await db.deleteFrom('b').execute()
    }
  },
  'streams rows': async (db: Db) => {
    for await (const { id } of db.selectFrom('a').selectAll().stream())
      await db.deleteFrom('b').where('id', '=', id).execute()
  },
  'reads the schema': async db => {
    if ((await db.introspection.getTables()).length === 0) await db.schema.dropTable('a').execute()
  },
  'returns rows of a transaction': async (db: Db) => {
    const rows = await db.transaction().execute(inner => inner.selectFrom('a').selectAll().execute())
    await db.insertInto('b').values(rows).execute()
  },
  'works in batches': async (db: Db) => {
    for (;;) {
      const rows = await db.selectFrom('a').selectAll().limit(10).execute()
      if (rows.length === 0) return
      await db.deleteFrom('a').execute()
    }
  },
  'never ends': async (db: Db) => {
    for (;;) await db.deleteFrom('a').execute()
  },
  'makes text of a value': async db => {
    await db.schema.createTable(`a_${db.schema}`).execute()
  },
  'has an asynchronous callback that no statement awaits': async (db: Db) => {
    await db.deleteFrom('a').$call(async builder => Promise.reject(new Error(String(builder))))
  },
  'uses sql': async db => void (await sql`CREATE TABLE a (id text)`.execute(db)),
  'uses sql in a call': withDefault(sql`1`),
  'uses an object of a class': withDefault(new Date(0)),
  fails: async db => {
    await db.schema.dropTable('a').execute()
    throw new Error('half-way')
  },
}

for (const [what, up] of Object.entries(UNKNOWN))
  t.test(`a migration that ${what} has no recording`, async t => {
    for (const engine of ['sqlite', 'postgres'] as const) t.equal(await calls(up, engine), null)
  })

t.test('every built-in migration, and that of the example, is recorded', async t => {
  for (const { migrations = {} } of allFeatures([notes]))
    for (const [name, migration] of Object.entries(migrations))
      for (const engine of ['sqlite', 'postgres'] as const)
        t.ok((await recordedCalls(migration, engine))?.length, name)
})
