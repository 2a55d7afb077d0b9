/**
 * Lists, counts and exports of users (docs/design.md, "Contract"). The server chooses the index; a statement that times out ends with 503.
 */
import type { Position, UserFilter, UserQuery } from '../../users/listing.ts'
import type { User, UserWithHash } from '../../users/user.ts'
import { START, selectUser, toUser, toUserWithHash, type UserRow, type UserRowWithHash } from '../rows.ts'
import {
  countQuery,
  creation,
  EXPORTED_METADATA,
  METADATA_BYTES,
  pageQuery,
  ROLE_ORDER,
  type Users,
} from '../user-queries.ts'
import type { Reader, Statement } from './database.ts'
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

/** The users with a role, read from `user_roles`: its primary key has the order and the bounds of creation. */
const withRole = (role: string, filter: UserFilter): Users => {
  const { after, before } = creation(filter)
  let users = queries
    .selectFrom('user_roles')
    .innerJoin('users', 'users.key', 'user_roles.user_key')
    .where('user_roles.role', '=', role)
  if (after !== null) users = users.where('user_roles.user_created_at', '>', after)
  if (before !== null) users = users.where('user_roles.user_created_at', '<', before)
  return users as unknown as Users
}

export const pageStatement = (query: UserQuery): Statement => {
  const { role, ...filter } = query.filter
  return role !== undefined && filter.ids === undefined && query.sort.field === 'createdAt'
    ? statement(pageQuery(withRole(role, filter), { ...query, filter }, ROLE_ORDER))
    : statement(pageQuery(usersOf(query.filter), query))
}

export const countStatement = (filter: UserFilter): Statement =>
  statement(countQuery(usersOf(filter), filter))

export const listUsers = async (reader: Reader, query: UserQuery): Promise<readonly User[]> =>
  (await reader.read<UserRow>(pageStatement(query))).map(toUser)

export const countUsers = async (reader: Reader, filter: UserFilter): Promise<number> =>
  (await reader.read<{ total: number }>(countStatement(filter)))[0]?.total ?? 0

/** The sum is computed while the index is read, and long metadata only read for users within the page. */
export const EXPORT_USERS = `SELECT * FROM (
    ${selectUser(
      'password_hash',
      `sum(${METADATA_BYTES}) OVER (ORDER BY created_at, id) - (${METADATA_BYTES}) AS bytes_before`,
    )} WHERE (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT $3
  ) AS following WHERE bytes_before < ${EXPORTED_METADATA} ORDER BY created_at, id`

/** Users of one page of an export. Converting them blocks the event loop for about three milliseconds. */
const EXPORT_PAGE = 500

/** The next page of an export, in the order of creation. No connection is held between two pages. */
export const exportUsers = async (
  reader: Reader,
  after: Position | null,
): Promise<readonly UserWithHash[]> => {
  const { key, id } = after ?? START
  const rows = await reader.read<UserRowWithHash>({
    name: 'export',
    text: EXPORT_USERS,
    values: [key, id, EXPORT_PAGE],
  })
  return rows.map(toUserWithHash)
}
