/** Runs the migrations of features, and records each with a checksum. A failure leaves nothing behind. */
import { createHash } from 'node:crypto'
import {
  FeatureError,
  type FeatureMigration,
  type MigrationStatement,
  type NamedTable,
  quoted,
  type StoredFeature,
  tablesOf,
  uniquesOf,
} from '../stored-feature.ts'
import { type Engine, type MigrationSession, type RecordedRow, SQL_DIALECTS } from './session.ts'

/** A statement in one line, with the placeholders of the engine. */
const compiled = (engine: Engine, text: string): string => {
  const line = text.trim().replaceAll(/\s+/g, ' ').replaceAll('( ', '(').replaceAll(' )', ')')
  return engine === 'sqlite' ? line.replaceAll(/\$\d+/g, '?') : line
}

const textOf = (statement: MigrationStatement): string =>
  typeof statement === 'string' ? statement : statement.text

/**
 * The checksum of the statements on an empty database: neither formatting, nor whether it is SQL or a function of Kysely, changes
 * it. Values are left out, because they may be timestamps and new ids.
 */
const checksumOf = async (migration: FeatureMigration, engine: Engine): Promise<string> => {
  const statements =
    migration.up === undefined
      ? migration.sql(SQL_DIALECTS[engine]).map(statement => compiled(engine, textOf(statement)))
      : await (await import('./with-kysely.ts')).statementsWithKysely(migration, engine)
  const hash = createHash('sha256')
  for (const statement of statements) hash.update(`${statement}\n`)
  return hash.digest('hex')
}

/** Checksums by the names of migrations, in their order. */
const checksumsOf = async (
  { migrations = {} }: StoredFeature,
  engine: Engine,
): Promise<ReadonlyMap<string, string>> => {
  const checksums = new Map<string, string>()
  for (const name of Object.keys(migrations).sort())
    checksums.set(name, await checksumOf(migrations[name] as FeatureMigration, engine))
  return checksums
}

/** Changes with the declared tables, whose columns and indexes are then checked again. */
const fingerprintOf = (feature: StoredFeature, checksums: ReadonlyMap<string, string>): string =>
  createHash('sha256')
    .update(JSON.stringify([[...checksums], tablesOf([feature])]))
    .digest('hex')

const recordedOf = (rows: readonly RecordedRow[], feature: StoredFeature): Map<string, string> =>
  new Map(
    rows.flatMap(row =>
      row.feature === feature.name && row.name !== null ? [[row.name, row.checksum ?? '']] : [],
    ),
  )

/** Whether a database has the tables of these features; others may be there too. */
export const migratedFeatures = async (
  engine: Engine,
  rows: readonly RecordedRow[],
  features: readonly StoredFeature[],
): Promise<boolean> => {
  for (const feature of features) {
    const recorded = recordedOf(rows, feature)
    const checksums = await checksumsOf(feature, engine)
    if (recorded.size !== checksums.size) return false
    for (const [name, checksum] of checksums) if (recorded.get(name) !== checksum) return false
    const fingerprint = fingerprintOf(feature, checksums)
    if (!rows.some(row => row.feature === feature.name && row.name === null && row.checksum === fingerprint))
      return false
  }
  return true
}

const runMigration = async (
  { engine, run }: MigrationSession,
  feature: string,
  name: string,
  migration: FeatureMigration,
): Promise<void> => {
  try {
    if (migration.up !== undefined) {
      const { runWithKysely } = await import('./with-kysely.ts')
      return await runWithKysely(migration, engine, run)
    }
    for (const statement of migration.sql(SQL_DIALECTS[engine]))
      if (typeof statement === 'string') await run(statement)
      else await run(compiled(engine, statement.text), statement.values)
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause)
    throw new FeatureError(`The migration ${name} of the feature ${feature} failed: ${message}`, { cause })
  }
}

const migrateFeature = async (
  session: MigrationSession,
  { name: feature, migrations = {} }: StoredFeature,
  checksums: ReadonlyMap<string, string>,
  recorded: ReadonlyMap<string, string>,
): Promise<void> => {
  const { engine, run } = session
  for (const name of recorded.keys())
    if (!checksums.has(name))
      throw new FeatureError(
        `The migration ${name} of the feature ${feature} has run on this database, but this version does not have it`,
      )
  const last = [...recorded.keys()].sort().at(-1) ?? ''
  for (const [name, checksum] of checksums) {
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
    await runMigration(session, feature, name, migrations[name] as FeatureMigration)
    const insert = 'INSERT INTO feature_migrations (feature, name, checksum, ran_at) VALUES ($1, $2, $3, $4)'
    await run(compiled(engine, insert), [feature, name, checksum, Date.now()])
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

/** Selects indexes, also the primary key. SQLite does not list a key that is the number of the row. */
const SELECT_INDEXES: Readonly<Record<Engine, string>> = {
  sqlite: `SELECT own.name AS "index", own."unique" AS "isUnique", part.name AS "column", part.seqno AS position
    FROM pragma_index_list(?) AS own JOIN pragma_index_info(own.name) AS part WHERE NOT own.partial
    UNION ALL SELECT '', 1, name, pk FROM pragma_table_info(?) WHERE pk > 0 ORDER BY 1, position`,
  postgres: `SELECT indexrelid::text AS "index", indisunique AS "isUnique", attname AS "column"
    FROM pg_index CROSS JOIN generate_series(0, indnkeyatts - 1) AS position
      LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[position] AND attnum > 0
    WHERE indrelid = to_regclass(quote_ident($1)) AND indpred IS NULL ORDER BY indexrelid, position`,
}

const indexesOf = async ({ engine, run }: MigrationSession, table: string): Promise<readonly Index[]> => {
  const values = engine === 'sqlite' ? [table, table] : [table]
  const rows = await run<IndexColumn>(SELECT_INDEXES[engine], values)
  return [...Map.groupBy(rows, ({ index }) => index).values()].map(parts => ({
    isUnique: Boolean(parts[0]?.isUnique),
    columns: parts.map(({ column }) => column),
  }))
}

const isSameSet = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  one.length === other.length && one.every(member => other.includes(member))

/** @throws {FeatureError} when a column by which rows are deleted has no index, or values that must be unique have no unique one. */
const checkIndexes = async (session: MigrationSession, feature: string, table: NamedTable): Promise<void> => {
  const { name, owner, cleanUp } = table
  const indexes = await indexesOf(session, name)
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
const checkTables = async (session: MigrationSession, feature: StoredFeature): Promise<void> => {
  for (const table of tablesOf([feature])) {
    const { name, owner, key, updatedAt, cleanUp } = table
    const columns = [owner, key, updatedAt, ...uniquesOf(table).flat(), cleanUp?.column].filter(
      column => column !== undefined && column !== null,
    )
    // SQLite reads an unknown name in quotes as text, unless it is that of a table's column.
    const selected = columns.map(column => `${quoted(name)}.${quoted(column)}`)
    try {
      await session.run(`SELECT ${selected.join(', ')} FROM ${quoted(name)} LIMIT 0`, [])
    } catch (cause) {
      throw new FeatureError(
        `The feature ${feature.name} declares the table ${name} with the columns ${columns.join(', ')}, but its migrations do not create them`,
        { cause },
      )
    }
    await checkIndexes(session, feature.name, table)
  }
}

export const migrateFeatures = async (
  session: MigrationSession,
  features: readonly StoredFeature[],
): Promise<void> => {
  const { engine, run } = session
  const { text } = SQL_DIALECTS[engine]
  await run(`CREATE TABLE IF NOT EXISTS feature_migrations (
      feature ${text}, name ${text}, checksum text NOT NULL, ran_at bigint NOT NULL,
      CONSTRAINT feature_migrations_key PRIMARY KEY (feature, name)
    );
    CREATE TABLE IF NOT EXISTS migrated_features (feature ${text} PRIMARY KEY, fingerprint text NOT NULL)`)
  const rows = await run<RecordedRow>('SELECT feature, name, checksum FROM feature_migrations', [])
  const checksums = new Map<StoredFeature, ReadonlyMap<string, string>>()
  for (const feature of features) {
    const own = await checksumsOf(feature, engine)
    checksums.set(feature, own)
    await migrateFeature(session, feature, own, recordedOf(rows, feature))
  }
  for (const feature of features) await checkTables(session, feature)
  for (const [feature, own] of checksums) {
    const upsert = `INSERT INTO migrated_features (feature, fingerprint) VALUES ($1, $2)
      ON CONFLICT (feature) DO UPDATE SET fingerprint = excluded.fingerprint`
    await run(compiled(engine, upsert), [feature.name, fingerprintOf(feature, own)])
  }
}
