/**
 * Runs the migrations of features, and records each with a checksum. The caller provides a transaction under a lock, so that
 * instances that start at once run them one after the other, and a failure leaves nothing behind.
 */
import { createHash } from 'node:crypto'
import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from 'kysely'
import {
  FeatureError,
  type FeatureMigration,
  type NamedTable,
  type StoredFeature,
  tablesOf,
  uniquesOf,
} from '../stored-feature.ts'
import { fingerprintOf, type RanMigration } from './known-schema.ts'
import type { FeatureDialect } from './schema-dialect.ts'

interface Recorded extends RanMigration {
  readonly feature: string
}

/** A database without a connection: every query has no rows. */
const dryDatabase = ({ engine }: FeatureDialect, onQuery: (text: string) => void): Kysely<unknown> =>
  new Kysely<unknown>({
    dialect: {
      createAdapter: () => (engine === 'sqlite' ? new SqliteAdapter() : new PostgresAdapter()),
      createDriver: () => new DummyDriver(),
      createIntrospector: db =>
        engine === 'sqlite' ? new SqliteIntrospector(db) : new PostgresIntrospector(db),
      createQueryCompiler: () =>
        engine === 'sqlite' ? new SqliteQueryCompiler() : new PostgresQueryCompiler(),
    },
    log: ({ query }) => onQuery(query.sql),
  })

/**
 * The checksum of the statements that a migration runs on an empty database. Comments, formatting, and whether Node strips the types or a
 * compiler does, do not change it. Parameters are left out, because they may be timestamps and new ids.
 */
const checksumOf = async ({ up }: FeatureMigration, dialect: FeatureDialect): Promise<string> => {
  const hash = createHash('sha256')
  const db = dryDatabase(dialect, text => hash.update(`${text}\n`))
  try {
    await up(db, dialect)
  } catch {
    // A migration that needs the rows that it reads fails here, always after the same statements. Another error occurs again when
    // the migration runs.
  }
  return hash.digest('hex')
}

/** @throws {FeatureError} in place of the error of the migration. */
const run = async (
  db: Kysely<unknown>,
  dialect: FeatureDialect,
  feature: string,
  name: string,
  { up }: FeatureMigration,
): Promise<void> => {
  try {
    await up(db, dialect)
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause)
    throw new FeatureError(`The migration ${name} of the feature ${feature} failed: ${message}`, { cause })
  }
}

const migrateFeature = async (
  db: Kysely<unknown>,
  dialect: FeatureDialect,
  { name: feature, migrations = {} }: StoredFeature,
  recorded: ReadonlyMap<string, string>,
): Promise<void> => {
  for (const name of recorded.keys())
    if (migrations[name] === undefined)
      throw new FeatureError(
        `The migration ${name} of the feature ${feature} has run on this database, but this version does not have it`,
      )
  const last = [...recorded.keys()].sort().at(-1) ?? ''
  for (const [name, migration] of Object.entries(migrations).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const checksum = await checksumOf(migration, dialect)
    const ranAs = recorded.get(name)
    if (ranAs === checksum) continue
    if (ranAs !== undefined)
      throw new FeatureError(
        `The migration ${name} of the feature ${feature} was changed after it ran. Undo the change, and add a migration instead`,
      )
    if (name < last)
      throw new FeatureError(
        `The migration ${name} of the feature ${feature} is new, but sorts before ${last}, which has run. Rename it`,
      )
    await run(db, dialect, feature, name, migration)
    await sql`INSERT INTO feature_migrations (feature, name, checksum, ran_at)
      VALUES (${feature}, ${name}, ${checksum}, ${Date.now()})`.execute(db)
  }
}

/** Indexes of some rows only are left out. */
interface Index {
  readonly isUnique: boolean
  /** In their order; `null` is an expression. */
  readonly columns: readonly (string | null)[]
}

interface IndexColumn {
  readonly index: string
  /** 0 or 1 on SQLite. */
  readonly isUnique: boolean | number
  readonly column: string | null
}

/** The indexes of a table, also that of the primary key. */
const indexesOf = async (
  db: Kysely<unknown>,
  { engine }: FeatureDialect,
  table: string,
): Promise<readonly Index[]> => {
  // SQLite does not list a key that is the number of the row.
  const select =
    engine === 'sqlite'
      ? sql<IndexColumn>`SELECT own.name AS "index", own."unique" AS "isUnique", part.name AS "column", part.seqno AS position
          FROM pragma_index_list(${table}) AS own JOIN pragma_index_info(own.name) AS part WHERE NOT own.partial
          UNION ALL SELECT '', 1, name, pk FROM pragma_table_info(${table}) WHERE pk > 0 ORDER BY 1, position`
      : sql<IndexColumn>`SELECT indexrelid::text AS "index", indisunique AS "isUnique", attname AS "column"
          FROM pg_index CROSS JOIN generate_series(0, indnkeyatts - 1) AS position
            LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[position] AND attnum > 0
          WHERE indrelid = to_regclass(${`"${table}"`}) AND indpred IS NULL ORDER BY indexrelid, position`
  const { rows } = await select.execute(db)
  return [...Map.groupBy(rows, ({ index }) => index).values()].map(parts => ({
    isUnique: Boolean(parts[0]?.isUnique),
    columns: parts.map(({ column }) => column),
  }))
}

const isSameSet = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  one.length === other.length && one.every(member => other.includes(member))

/** @throws {FeatureError} when a column by which rows are deleted has no index, or values that must be unique have no unique one. */
const checkIndexes = async (
  db: Kysely<unknown>,
  dialect: FeatureDialect,
  feature: string,
  table: NamedTable,
): Promise<void> => {
  const { name, owner, cleanUp } = table
  const indexes = await indexesOf(db, dialect, name)
  for (const [column, work] of [
    [owner, 'the deletion of a user'],
    [cleanUp?.column, 'each clean-up'],
  ])
    if (typeof column === 'string' && !indexes.some(({ columns: [first] }) => first === column))
      throw new FeatureError(
        `The column ${column} of the table ${name} of the feature ${feature} has no index, so ${work} would read the whole table: add a migration that creates an index that begins with it`,
      )
  for (const unique of uniquesOf(table))
    if (!indexes.some(({ isUnique, columns }) => isUnique && isSameSet(columns, unique)))
      throw new FeatureError(
        `The table ${name} of the feature ${feature} has no unique index of ${unique.join(', ')}: add a migration that creates it`,
      )
}

/** @throws {FeatureError} when a declared table or column does not exist, or lacks an index. */
const checkTables = async (
  db: Kysely<unknown>,
  dialect: FeatureDialect,
  features: readonly StoredFeature[],
): Promise<void> => {
  for (const feature of features)
    for (const table of tablesOf([feature])) {
      const { name, owner, key, updatedAt, cleanUp } = table
      const columns = [owner, key, updatedAt, ...uniquesOf(table).flat(), cleanUp?.column].filter(
        column => column !== undefined && column !== null,
      )
      try {
        await sql`SELECT ${sql.join(columns.map(column => sql.ref(`${name}.${column}`)))} FROM ${sql.table(name)} LIMIT 0`.execute(
          db,
        )
      } catch (cause) {
        throw new FeatureError(
          `The feature ${feature.name} declares the table ${name} with the columns ${columns.join(', ')}, but its migrations do not create them`,
          { cause },
        )
      }
      await checkIndexes(db, dialect, feature.name, table)
    }
}

const selectRecorded = async (db: Kysely<unknown>): Promise<ReadonlyMap<string, readonly Recorded[]>> => {
  const { rows } = await sql<Recorded>`SELECT feature, name, checksum FROM feature_migrations`.execute(db)
  return Map.groupBy(rows, ({ feature }) => feature)
}

/** Lets the next start recognise the schema. */
const storeFingerprints = async (
  db: Kysely<unknown>,
  { engine, text }: FeatureDialect,
  features: readonly StoredFeature[],
): Promise<void> => {
  await db.schema
    .createTable('migrated_features')
    .ifNotExists()
    .addColumn('feature', text, column => column.primaryKey())
    .addColumn('fingerprint', 'text', column => column.notNull())
    .execute()
  const recorded = await selectRecorded(db)
  for (const feature of features) {
    const fingerprint = await fingerprintOf(engine, feature, recorded.get(feature.name) ?? [])
    if (fingerprint !== null)
      await sql`INSERT INTO migrated_features (feature, fingerprint) VALUES (${feature.name}, ${fingerprint})
        ON CONFLICT (feature) DO UPDATE SET fingerprint = excluded.fingerprint`.execute(db)
  }
}

/** @throws {FeatureError} */
export const migrateFeatures = async (
  db: Kysely<unknown>,
  dialect: FeatureDialect,
  features: readonly StoredFeature[],
): Promise<void> => {
  if (features.length === 0) return
  await db.schema
    .createTable('feature_migrations')
    .ifNotExists()
    .addColumn('feature', dialect.text)
    .addColumn('name', dialect.text)
    .addColumn('checksum', 'text', column => column.notNull())
    .addColumn('ran_at', 'bigint', column => column.notNull())
    .addPrimaryKeyConstraint('feature_migrations_key', ['feature', 'name'] as never)
    .execute()
  const recorded = await selectRecorded(db)
  for (const feature of features) {
    const own = recorded.get(feature.name) ?? []
    await migrateFeature(db, dialect, feature, new Map(own.map(({ name, checksum }) => [name, checksum])))
  }
  await checkTables(db, dialect, features)
  await storeFingerprints(db, dialect, features)
}
