/** Migrations of features that are functions of Kysely. Loaded only if there is one: Kysely takes 100 ms and 7 MB of a start. */
import {
  type DatabaseConnection,
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
import type { KyselyMigration } from '../stored-feature.ts'
import { type Engine, type FeatureDialect, type Run, SQL_DIALECTS } from './session.ts'

const refuseTransaction = async (): Promise<never> => {
  throw new Error('a migration runs in a transaction: it cannot begin another one')
}

/** A query builder whose statements `run` executes. */
const builderOver = (engine: Engine, run: Run): Kysely<unknown> => {
  const connection: DatabaseConnection = {
    executeQuery: async ({ sql, parameters }) => ({ rows: [...(await run<never>(sql, parameters))] }),
    async *streamQuery({ sql, parameters }) {
      yield { rows: [...(await run<never>(sql, parameters))] }
    },
  }
  const driver = Object.assign(new DummyDriver(), {
    acquireConnection: async () => connection,
    beginTransaction: refuseTransaction,
  })
  const isSqlite = engine === 'sqlite'
  return new Kysely<unknown>({
    dialect: {
      createAdapter: () => (isSqlite ? new SqliteAdapter() : new PostgresAdapter()),
      createDriver: () => driver,
      createIntrospector: db => (isSqlite ? new SqliteIntrospector(db) : new PostgresIntrospector(db)),
      createQueryCompiler: () => (isSqlite ? new SqliteQueryCompiler() : new PostgresQueryCompiler()),
    },
  })
}

export const runWithKysely = async ({ up }: KyselyMigration, engine: Engine, run: Run): Promise<void> => {
  const text: FeatureDialect['text'] = engine === 'sqlite' ? 'text' : sql.raw(SQL_DIALECTS.postgres.text)
  await up(builderOver(engine, run), { ...SQL_DIALECTS[engine], text })
}

/** @returns the statements that a migration runs on a database without rows. */
export const statementsWithKysely = async (
  migration: KyselyMigration,
  engine: Engine,
): Promise<readonly string[]> => {
  const statements: string[] = []
  try {
    await runWithKysely(migration, engine, async text => {
      statements.push(text)
      return []
    })
  } catch {
    // A migration that needs the rows that it reads fails here, always after the same statements. Another error occurs again when
    // the migration runs.
  }
  return statements
}
