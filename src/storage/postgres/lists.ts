/** Lists and counts of users (DESIGN §4): the server chooses the index; a statement that takes too long ends with 503. */
import type { UserFilter, UserQuery } from '../../users/listing.ts'
import { countQuery, pageQuery, type Users } from '../user-queries.ts'
import type { Statement } from './database.ts'
import { queries, statement } from './query-builder.ts'

/**
 * The users who have some ids, found before anything else is asked of them: on its own the server would at some sizes read
 * an index in the order of the list until it has met enough of them, 57 ms at 30,000 users.
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
