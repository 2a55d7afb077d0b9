/** Every user in order of creation, a page at a time: no connection is held between two pages. */
import type { BulkUserStore } from '../../accounts/bulk-users.ts'
import type { UserFilter, UserQuery } from '../../users/listing.ts'
import { START, selectUser, toUser, type UserRow } from '../rows.ts'
import { countQuery, pageQuery, type Users } from '../user-queries.ts'
import type { Database, Statement } from './database.ts'
import { queries, statement } from './queries.ts'

const NEXT_USERS = `${selectUser('password_hash')} WHERE (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT $3`

/** What is made of them holds the event loop for some three milliseconds. */
const PAGE = 500

export const exporter =
  (database: Database): BulkUserStore['exportUsers'] =>
  async after => {
    const { key, id } = after ?? START
    const rows = await database.read<UserRow & { password_hash: string }>({
      name: 'export',
      text: NEXT_USERS,
      values: [key, id, PAGE],
    })
    return rows.map(row => ({ ...toUser(row), passwordHash: row.password_hash }))
  }

/** Lists and counts of users (DESIGN §4): the server chooses the index; a statement that takes too long ends with 503. */

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
