/** Lists and counts of users (DESIGN §4): the server chooses the index; a statement that takes too long ends with 503. */
import {
  type Compilable,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely'
import type { UserFilter, UserQuery } from '../../users/user-list.ts'
import type { DatabaseSchema } from '../schema.ts'
import { countQuery, pageQuery } from '../user-queries.ts'
import type { Statement } from './database.ts'

/** Kysely as a writer of SQL alone: connections are the database's. */
const queries = new Kysely<DatabaseSchema>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: db => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})

/** Without a name: a plan that is made for any search serves none. */
const statement = (query: Compilable): Statement => {
  const { sql, parameters } = query.compile()
  return { text: sql, values: parameters }
}

export const page = (query: UserQuery): Statement => statement(pageQuery(queries.selectFrom('users'), query))

export const count = (filter: UserFilter): Statement =>
  statement(countQuery(queries.selectFrom('users'), filter))
