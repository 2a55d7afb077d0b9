/** Statements whose shape depends on what is asked. */
import {
  type Compilable,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely'
import type { DatabaseSchema } from '../schema.ts'
import type { Statement } from './database.ts'

/** Kysely as a writer of SQL alone: connections are the database's. */
export const queries = new Kysely<DatabaseSchema>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: db => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})

/** Without a name: a plan that is made for any search serves none. */
export const statement = (query: Compilable): Statement => {
  const { sql, parameters } = query.compile()
  return { text: sql, values: parameters }
}
