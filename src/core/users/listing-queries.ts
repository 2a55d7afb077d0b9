/** Queries over users whose shape depends on the filter, for both engines. */
import { type ExpressionBuilder, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import { featureMethods } from '../accounts/sign-in-tables.ts'
import type { DatabaseSchema } from '../store/tables.ts'
import { FILTERS } from './fields.ts'
import type { SortField, UserFilter, UserQuery } from './listing.ts'
import { canonicalEmail, searchKey } from './user.ts'
import { HAS_PASSWORD, READ_COLUMNS } from './user-rows.ts'

export const SORT_COLUMNS = {
  createdAt: 'created_at',
  firstName: 'first_name_key',
  lastName: 'last_name_key',
} as const satisfies Record<SortField, string>

const LAST_CODE_POINT = 0x10ffff

const next = (point: number): number => (point === 0xd7ff ? 0xe000 : point + 1)

/** The first text after all that start with `prefix`, by code points; `null` if there is none. */
const afterAllWith = (prefix: string): string | null => {
  const points = Array.from(prefix, character => character.codePointAt(0) ?? 0)
  while (points.at(-1) === LAST_CODE_POINT) points.pop()
  const last = points.pop()
  return last === undefined ? null : String.fromCodePoint(...points, next(last))
}

export type Users<Row = object> = SelectQueryBuilder<DatabaseSchema, 'users', Row>

export type SearchColumn = 'first_name_key' | 'last_name_key' | 'email'

export const searchColumns = ({ searchEmail }: UserFilter): readonly SearchColumn[] => [
  'first_name_key',
  'last_name_key',
  ...(searchEmail ? (['email'] as const) : []),
]

/** The range of a search: an index serves it, and unlike `LIKE` it has no wildcards. */
export const searchRange = (search: string): { from: string; before: string | null } => {
  const from = searchKey(search)
  return { from, before: afterAllWith(from) }
}

export const startsWith =
  (search: string, columns: readonly SearchColumn[]) => (eb: ExpressionBuilder<DatabaseSchema, 'users'>) => {
    const { from, before } = searchRange(search)
    return eb.or(
      columns.map(column =>
        eb.and([eb(column, '>=', from), ...(before === null ? [] : [eb(column, '<', before)])]),
      ),
    )
  }

/** The exclusive bounds of the creation time; `null` where there is none. */
export const creation = ({ createdAfter, createdBefore, lastRequestBefore }: UserFilter) => {
  const ends = [createdBefore, lastRequestBefore].filter(timestamp => timestamp !== undefined)
  return { after: createdAfter ?? null, before: ends.length === 0 ? null : Math.min(...ends) }
}

/** No index has timestamps, because every flush would have to update it: SQLite looks up each user's, PostgreSQL may scan all. */
const requestedAfter = (timestamp: number) => (eb: ExpressionBuilder<DatabaseSchema, 'users'>) =>
  eb.exists(
    eb
      .selectFrom('last_requests')
      .select('user_key')
      .whereRef('last_requests.user_key', '=', 'users.key')
      .where('last_requests.at', '>', timestamp),
  )

export const filteredColumns = ({ fields = {} }: UserFilter) => {
  const values: Readonly<Record<string, string | undefined>> = fields
  return FILTERS.flatMap(({ field, column }) => {
    const value = values[field]
    return value === undefined ? [] : [{ column, value }]
  })
}

const hasRole = (role: string) => (eb: ExpressionBuilder<DatabaseSchema, 'users'>) =>
  eb.exists(
    eb
      .selectFrom('user_roles')
      .select('role')
      .where('user_roles.role', '=', role)
      .whereRef('user_roles.user_key', '=', 'users.key'),
  )

/** Applies a filter, except for the creation time, and for ids, which each engine looks up itself. */
export const filteredBesidesCreation = <Row>(users: Users<Row>, filter: UserFilter): Users<Row> => {
  const { lastRequestAfter, lastRequestBefore } = filter
  let result = users
  if (filter.email !== undefined) result = result.where('email', '=', canonicalEmail(filter.email))
  if (filter.disabled !== undefined) result = result.where('disabled', '=', Number(filter.disabled))
  if (filter.role !== undefined) result = result.where(hasRole(filter.role))
  for (const { column, value } of filteredColumns(filter)) result = result.where(column, '=', value)
  if (filter.search !== undefined) result = result.where(startsWith(filter.search, searchColumns(filter)))
  if (lastRequestAfter !== undefined) result = result.where(requestedAfter(lastRequestAfter))
  // A request at the timestamp is not before it.
  if (lastRequestBefore !== undefined)
    result = result.where(eb => eb.not(requestedAfter(lastRequestBefore - 1)(eb)))
  return result
}

/** Applies a filter, except for ids. */
export const filtered = <Row>(users: Users<Row>, filter: UserFilter): Users<Row> => {
  const { after, before } = creation(filter)
  let result = filteredBesidesCreation(users, filter)
  if (after !== null) result = result.where('users.created_at', '>', after)
  if (before !== null) result = result.where('users.created_at', '<', before)
  return result
}

/** The columns of the sort key and of the id. */
export type OrderColumns = readonly [string, string]

/** The order of creation of the users with a role, from the primary key of `user_roles`. */
export const ROLE_ORDER: OrderColumns = ['user_roles.user_created_at', 'user_roles.user_id']

/** One page along an index (keyset pagination). @param order columns of another index with the same values. */
export const onPage = <Row>(
  users: Users<Row>,
  { filter, sort, after, limit }: UserQuery,
  order: OrderColumns = [`users.${SORT_COLUMNS[sort.field]}`, 'users.id'],
): Users<Row> => {
  const [key, id] = order.map(column => sql.ref(column)) as [RawBuilder<unknown>, RawBuilder<unknown>]
  const direction = sort.descending ? 'desc' : 'asc'
  let page = filtered(users, filter)
  if (after !== null) {
    const operator = sort.descending ? sql`<` : sql`>`
    page = page.where(sql<boolean>`(${key}, ${id}) ${operator} (${after.key}, ${after.id})`)
  }
  return page.orderBy(key, direction).orderBy(id, direction).limit(limit)
}

const METADATA_COLUMNS = ['user_metadata', 'app_metadata'] as const

const OTHER_COLUMNS = READ_COLUMNS.filter(
  (column): column is Exclude<typeof column, (typeof METADATA_COLUMNS)[number]> =>
    !METADATA_COLUMNS.includes(column as never),
)

const selectRead = (users: Users, { omitMetadata = false }: UserQuery) =>
  omitMetadata
    ? users.select(OTHER_COLUMNS).select(METADATA_COLUMNS.map(column => sql<string | null>`null`.as(column)))
    : users.select(READ_COLUMNS)

export const pageQuery = (users: Users, query: UserQuery, order?: OrderColumns) => {
  const { signInTables } = query
  const page = onPage(selectRead(users, query), query, order).select(eb => [
    sql.raw<number>(HAS_PASSWORD).as('has_password'),
    eb
      .selectFrom('last_requests')
      .select('at')
      .whereRef('last_requests.user_key', '=', 'users.key')
      .as('last_request_at'),
  ])
  return signInTables === undefined
    ? page
    : page.select(sql.raw<string>(featureMethods(signInTables)).as('feature_methods'))
}

/** Bytes of metadata in one page of an export: parsing and serialising them blocks the event loop for milliseconds. */
export const EXPORTED_METADATA = 262_144

/** The bytes of metadata, for which neither engine reads the text. */
export const METADATA_BYTES = METADATA_COLUMNS.map(column => `coalesce(octet_length(${column}), 0)`).join(
  ' + ',
)

export const countQuery = (users: Users, filter: UserFilter) =>
  filtered(
    users.select(eb => eb.fn.countAll<number>().as('total')),
    filter,
  )
