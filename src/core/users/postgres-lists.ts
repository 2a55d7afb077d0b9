/** Lists, counts and exports of users (docs/design.md, "Contract"). A statement that times out ends with 503. */

import type { Reader, Statement } from '#storage/postgres/database'
import { queryBuilder, statement } from '#storage/postgres/query-builder'
import { featureMethodsColumn } from '../accounts/sign-in-tables.ts'
import type { DatabaseSchema } from '../store/tables.ts'
import type { Position, SignInTables, UserFilter, UserQuery } from './listing.ts'
import {
  countQuery,
  creation,
  EXPORTED_METADATA,
  filtered,
  METADATA_BYTES,
  pageQuery,
  ROLE_ORDER,
  type Users,
} from './listing-queries.ts'
import type { User, UserWithHash } from './user.ts'
import {
  START,
  selectUser,
  toListedUser,
  toUserWithHash,
  type UserRow,
  type UserRowWithHash,
} from './user-rows.ts'

const queries = queryBuilder<DatabaseSchema>()

/** Selected before every other condition: the server would at some sizes scan an index in the order of the list. */
const withIds = (ids: readonly string[]): Users =>
  queries
    .with(
      cte => cte('users').materialized(),
      db => db.selectFrom('users').selectAll().where('id', 'in', ids),
    )
    .selectFrom('users')

const usersOf = ({ ids }: UserFilter): Users =>
  ids === undefined ? queries.selectFrom('users') : withIds(ids)

/** The primary key of `user_roles` has the order and the bounds of creation. */
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
  (await reader.read<UserRow>(pageStatement(query))).map(toListedUser)

export const countUsers = async (reader: Reader, filter: UserFilter): Promise<number> =>
  (await reader.read<{ total: number }>(countStatement(filter)))[0]?.total ?? 0

/** Matches that are counted if that is cheap. */
const FEW = 10_000

/** The planner's cost of what takes about ten milliseconds. */
const CHEAP = 2_000

const fewStatement = (filter: UserFilter): Statement =>
  statement(
    queries
      .selectFrom(
        filtered(usersOf(filter).select('users.key'), filter)
          .limit(FEW + 1)
          .as('few'),
      )
      .select(eb => eb.fn.countAll<number>().as('total')),
  )

interface Plan {
  readonly 'Node Type': string
  readonly 'Total Cost': number
  readonly 'Plan Rows': number
  readonly Plans?: readonly Plan[]
}

const limitOf = (plan: Plan): Plan | undefined =>
  plan['Node Type'] === 'Limit' ? plan : plan.Plans?.map(limitOf).find(limit => limit !== undefined)

/** Rows as the server has counted them when they were written. None after a crash, and on a replica. */
const WRITTEN_ROWS =
  "SELECT nullif(n_live_tup, 0) AS total FROM pg_stat_user_tables WHERE relid = 'users'::regclass"

/**
 * The planner's estimate, but no more than there are rows; few matches are counted. The planner multiplies the table's pages by the rows on a
 * page at the last autovacuum: after an import it is off by a factor of two to ten.
 */
export const estimateUsers = async (reader: Reader, filter: UserFilter): Promise<number> => {
  const few = fewStatement(filter)
  const [explained] = await reader.read<{ 'QUERY PLAN': readonly { Plan: Plan }[] }>({
    ...few,
    text: `EXPLAIN (FORMAT JSON) ${few.text}`,
  })
  const limit = explained && limitOf(explained['QUERY PLAN'][0]?.Plan as Plan)
  const planned = limit?.Plans?.at(-1)?.['Plan Rows'] ?? 0
  const [written] = await reader.read<{ total: number | null }>({ text: WRITTEN_ROWS, values: [] })
  const all = written?.total ?? null
  const isOfAll = Object.keys(filter).length === 0
  const estimate = isOfAll ? (all ?? planned) : Math.min(planned, all ?? planned)
  const isCheap = isOfAll || (limit !== undefined && limit['Total Cost'] <= CHEAP)
  if (estimate > 2 * FEW || !isCheap) return estimate
  const total = (await reader.read<{ total: number }>(few))[0]?.total ?? 0
  return total > FEW ? Math.max(estimate, total) : total
}

/** Long metadata is only read for users within the page. */
const exportText = (...columns: readonly string[]): string => `SELECT * FROM (
    ${selectUser(
      'password_hash',
      ...columns,
      `sum(${METADATA_BYTES}) OVER (ORDER BY created_at, id) - (${METADATA_BYTES}) AS bytes_before`,
    )} WHERE (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT $3
  ) AS following WHERE bytes_before < ${EXPORTED_METADATA} ORDER BY created_at, id`

export const EXPORT_USERS = exportText()

/** Users of a page: about three milliseconds of the event loop. */
const EXPORT_PAGE = 500

/** No connection is held between two pages. */
export const exportUsers = async (
  reader: Reader,
  after: Position | null,
  signInTables?: SignInTables,
): Promise<readonly UserWithHash[]> => {
  const { key, id } = after ?? START
  const statement =
    signInTables === undefined
      ? { name: 'export', text: EXPORT_USERS }
      : {
          name: 'export-with-methods',
          text: exportText(featureMethodsColumn(signInTables)),
        }
  const rows = await reader.read<UserRowWithHash>({ ...statement, values: [key, id, EXPORT_PAGE] })
  return rows.map(toUserWithHash)
}
