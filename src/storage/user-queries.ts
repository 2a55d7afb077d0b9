/** The queries over users whose shape depends on what is asked, written once for every engine. */
import { type ExpressionBuilder, type SelectQueryBuilder, sql } from 'kysely'
import type { SortField, UserFilter, UserQuery } from '../users/listing.ts'
import { canonicalEmail, searchKey } from '../users/user.ts'
import type { DatabaseSchema } from './schema.ts'

export const SORT_COLUMNS = {
  createdAt: 'created_at',
  firstName: 'first_name_key',
  lastName: 'last_name_key',
} as const satisfies Record<SortField, string>

const LAST_CODE_POINT = 0x10ffff

/** The code point after another, without the surrogates, which are none. */
const next = (point: number): number => (point === 0xd7ff ? 0xe000 : point + 1)

/** The first text after all those that start with `prefix`, in the order of code points; `null` when there is none. */
const afterAllWith = (prefix: string): string | null => {
  const points = Array.from(prefix, character => character.codePointAt(0) ?? 0)
  while (points.at(-1) === LAST_CODE_POINT) points.pop()
  const last = points.pop()
  return last === undefined ? null : String.fromCodePoint(...points, next(last))
}

/** Users, of whom a query picks some. */
export type Users<Row = object> = SelectQueryBuilder<DatabaseSchema, 'users', Row>

export type SearchColumn = 'first_name_key' | 'last_name_key' | 'email'

/** Where a search looks. */
export const searchColumns = ({ searchEmail }: UserFilter): readonly SearchColumn[] => [
  'first_name_key',
  'last_name_key',
  ...(searchEmail ? (['email'] as const) : []),
]

/** What a search finds in a column, as a range, which an index serves; `LIKE` would have characters of its own. */
export const searchRange = (search: string): { from: string; before: string | null } => {
  const from = searchKey(search)
  return { from, before: afterAllWith(from) }
}

/** Whether one of the columns starts with what is searched. */
export const startsWith =
  (search: string, columns: readonly SearchColumn[]) => (eb: ExpressionBuilder<DatabaseSchema, 'users'>) => {
    const { from, before } = searchRange(search)
    return eb.or(
      columns.map(column =>
        eb.and([eb(column, '>=', from), ...(before === null ? [] : [eb(column, '<', before)])]),
      ),
    )
  }

/** Between which timestamps the matches of a filter were created, neither included; `null` where there is no bound. */
export const creation = ({ createdAfter, createdBefore, lastRequestBefore }: UserFilter) => {
  const ends = [createdBefore, lastRequestBefore].filter(moment => moment !== undefined)
  return { after: createdAfter ?? null, before: ends.length === 0 ? null : Math.min(...ends) }
}

/**
 * Whether a user has made a request after a timestamp. Without an index on timestamps, which each flush of them would have to keep:
 * SQLite looks each user's up, PostgreSQL may also read them all.
 */
const requestedAfter = (moment: number) => (eb: ExpressionBuilder<DatabaseSchema, 'users'>) =>
  eb.exists(
    eb
      .selectFrom('last_requests')
      .select('user_key')
      .whereRef('last_requests.user_key', '=', 'users.key')
      .where('last_requests.at', '>', moment),
  )

/** What a filter asks for besides the timestamp of creation, and besides ids: each engine takes care of a lookup by itself. */
export const filteredBesidesCreation = <Row>(users: Users<Row>, filter: UserFilter): Users<Row> => {
  const { lastRequestAfter, lastRequestBefore } = filter
  let result = users
  if (filter.email !== undefined) result = result.where('email', '=', canonicalEmail(filter.email))
  if (filter.disabled !== undefined) result = result.where('disabled', '=', Number(filter.disabled))
  if (filter.search !== undefined) result = result.where(startsWith(filter.search, searchColumns(filter)))
  if (lastRequestAfter !== undefined) result = result.where(requestedAfter(lastRequestAfter))
  // At that timestamp is not before it.
  if (lastRequestBefore !== undefined)
    result = result.where(eb => eb.not(requestedAfter(lastRequestBefore - 1)(eb)))
  return result
}

/** What a filter asks for besides ids. */
export const filtered = <Row>(users: Users<Row>, filter: UserFilter): Users<Row> => {
  const { after, before } = creation(filter)
  let result = filteredBesidesCreation(users, filter)
  if (after !== null) result = result.where('users.created_at', '>', after)
  if (before !== null) result = result.where('users.created_at', '<', before)
  return result
}

/** The users of one page, in the order of an index from the position on: what was read before it is not read again. */
export const onPage = <Row>(users: Users<Row>, { filter, sort, after, limit }: UserQuery): Users<Row> => {
  const column = SORT_COLUMNS[sort.field]
  const direction = sort.descending ? 'desc' : 'asc'
  let page = filtered(users, filter)
  if (after !== null) {
    const operator = sort.descending ? sql`<` : sql`>`
    page = page.where(
      sql<boolean>`(${sql.ref(`users.${column}`)}, users.id) ${operator} (${after.key}, ${after.id})`,
    )
  }
  return page.orderBy(`users.${column}`, direction).orderBy('users.id', direction).limit(limit)
}

/** One page with all that is told of its users. */
export const pageQuery = (users: Users, query: UserQuery) =>
  onPage(users.select('users.id'), query)
    .select([
      'email',
      'first_name',
      'last_name',
      'email_verified',
      'disabled',
      'created_at',
      'updated_at',
      'version',
    ])
    .select(eb =>
      eb
        .selectFrom('last_requests')
        .select('at')
        .whereRef('last_requests.user_key', '=', 'users.key')
        .as('last_request_at'),
    )

export const countQuery = (users: Users, filter: UserFilter) =>
  filtered(
    users.select(eb => eb.fn.countAll<number>().as('total')),
    filter,
  )
