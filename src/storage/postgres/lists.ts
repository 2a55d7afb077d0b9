/** Lists and counts of users (DESIGN §4). The server chooses the index; a statement that times out ends with 503. */
import type { UserFilter, UserQuery } from '../../users/listing.ts'
import { countQuery, pageQuery, type Users } from '../user-queries.ts'
import type { Statement } from './database.ts'
import { queries, statement } from './query-builder.ts'

/**
 * The users with the given ids, selected before every other condition. Otherwise the server would, at some sizes, scan an index
 * in the order of the list until it has found enough of them: 57 ms at 30,000 users.
 */
const withIds = (ids: readonly string[]): Users =>
  queries
    .with(
      cte => cte('users').materialized(),
      db => db.selectFrom('users').selectAll().where('id', 'in', ids),
    )
    .selectFrom('users')

const usersOf = ({ ids }: UserFilter): Users =>
  ids === undefined ? queries.selectFrom('users') : withIds(ids)

export const page = (query: UserQuery): Statement => statement(pageQuery(usersOf(query.filter), query))

export const count = (filter: UserFilter): Statement => statement(countQuery(usersOf(filter), filter))
