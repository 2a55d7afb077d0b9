/** The queries over users whose shape depends on what is asked, written once for every engine. */
import { type ExpressionBuilder, type Kysely, type SelectQueryBuilder, sql } from 'kysely'
import { canonicalEmail, searchKey } from '../users/user.ts'
import type { SortField, UserFilter, UserQuery } from '../users/user-list.ts'
import type { DatabaseSchema } from './schema.ts'

const SORT_COLUMNS = {
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

type Users<Row> = SelectQueryBuilder<DatabaseSchema, 'users', Row>

type TextColumn = 'first_name_key' | 'last_name_key' | 'email'

/** As a range, which an index serves; `LIKE` would have characters of its own. */
const startsWith = (prefix: string) => {
  const end = afterAllWith(prefix)
  return (eb: ExpressionBuilder<DatabaseSchema, 'users'>, column: TextColumn) =>
    eb.and([eb(column, '>=', prefix), ...(end === null ? [] : [eb(column, '<', end)])])
}

const filtered = <Row>(query: Users<Row>, filter: UserFilter): Users<Row> => {
  let result = query
  if (filter.email !== undefined) result = result.where('email', '=', canonicalEmail(filter.email))
  if (filter.disabled !== undefined) result = result.where('disabled', '=', Number(filter.disabled))
  if (filter.search !== undefined) {
    const matches = startsWith(searchKey(filter.search))
    const columns = [
      'first_name_key',
      'last_name_key',
      ...(filter.searchEmail ? (['email'] as const) : []),
    ] as const
    result = result.where(eb => eb.or(columns.map(column => matches(eb, column))))
  }
  return result
}

/** One page, in the order of an index from the position on: what was read before it is not read again. */
export const pageQuery = (db: Kysely<DatabaseSchema>, { filter, sort, after, limit }: UserQuery) => {
  const column = SORT_COLUMNS[sort.field]
  const direction = sort.descending ? 'desc' : 'asc'
  let page = filtered(db.selectFrom('users').select('users.id'), filter)
  if (after !== null) {
    const operator = sort.descending ? sql`<` : sql`>`
    page = page.where(
      sql<boolean>`(${sql.ref(`users.${column}`)}, users.id) ${operator} (${after.key}, ${after.id})`,
    )
  }
  return page
    .leftJoin('last_requests', 'last_requests.user_key', 'users.key')
    .select([
      'email',
      'first_name',
      'last_name',
      'email_verified',
      'disabled',
      'created_at',
      'updated_at',
      'last_requests.at as last_request_at',
    ])
    .orderBy(`users.${column}`, direction)
    .orderBy('users.id', direction)
    .limit(limit)
}

export const countQuery = (db: Kysely<DatabaseSchema>, filter: UserFilter) =>
  filtered(
    db.selectFrom('users').select(eb => eb.fn.countAll<number>().as('total')),
    filter,
  )
