/** Builds the queries whose shape depends on their parameters. */
import {
  type Compilable,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely'
import type { Statement } from './database.ts'

/** Kysely as a builder of SQL only; `Database` runs the statements. */
export const queryBuilder = <Schema>(): Kysely<Schema> =>
  new Kysely<Schema>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: db => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  })

/** A statement without a name, so that PostgreSQL plans each search for its values. */
export const statement = (query: Compilable): Statement => {
  const { sql, parameters } = query.compile()
  return { text: sql, values: parameters }
}
