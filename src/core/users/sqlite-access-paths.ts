/** Access paths to the users that a filter matches: ranges of indexes, read in slices of a bounded number of rows. */
import { sql } from 'kysely'
import { queryBuilder } from '#storage/sqlite/query-builder'
import type { Reader } from '#storage/sqlite/reader'
import type { SlicedTask } from '#storage/sqlite/time-slicer'
import type { DatabaseSchema, UsersTable } from '../store/tables.ts'
import type { FieldColumn } from './fields.ts'
import type { Position, SortField, UserFilter, UserQuery } from './listing.ts'
import {
  creation,
  filtered,
  filteredBesidesCreation,
  filteredColumns,
  type OrderColumns,
  ROLE_ORDER,
  SORT_COLUMNS,
  searchColumns,
  searchRange,
  startsWith,
  type Users,
} from './listing-queries.ts'

const queries = queryBuilder<DatabaseSchema>()

type KeyColumn = 'created_at' | 'first_name_key' | 'last_name_key' | 'email' | FieldColumn

/** Consecutive entries of an index by `column` and id. */
export interface IndexRange {
  /** `user_roles`: the primary key of that table, after the role. */
  readonly index: `users_by_${KeyColumn}` | 'users_disabled' | 'user_roles'
  readonly role?: string
  readonly column: KeyColumn
  readonly descending: boolean
  /** The entry before the first one; `null` for the start of the index. */
  readonly after: Position | null
  /** The last entry; `null` for the end of the index. */
  readonly upTo: Position | null
  /** Adds the conditions that users within the range may not meet. */
  readonly matching: (users: Users) => Users
  readonly firstRows: number
}

/** Disjoint ranges that together contain all matches of a filter. */
export type AccessPath = readonly IndexRange[]

const compareKeys = (a: number | string, b: number | string): number =>
  typeof a === 'number' || typeof b === 'number'
    ? Number(a) - Number(b)
    : Buffer.compare(Buffer.from(a), Buffer.from(b))

export const comparePositions = (a: Position, b: Position): number =>
  compareKeys(a.key, b.key) || compareKeys(a.id, b.id)

/** The later of two positions in the direction in which an index is read. */
const laterPosition = (a: Position | null, b: Position | null, descending: boolean): Position | null => {
  if (a === null || b === null) return a ?? b
  return comparePositions(a, b) > 0 === descending ? b : a
}

/** Rows in a first slice: few where table rows are read, which may come from the disk; many where the index has all columns. */
const FEW_ROWS = 128
const MANY_ROWS = 1_000

/** Timestamps of last requests are in a table of their own, so no index of users covers them. */
const filtersByLastRequest = ({ lastRequestAfter, lastRequestBefore }: UserFilter): boolean =>
  lastRequestAfter !== undefined || lastRequestBefore !== undefined

const firstRows = (filter: UserFilter, readsTable: boolean): number =>
  readsTable || filtersByLastRequest(filter) ? FEW_ROWS : MANY_ROWS

/** Bounds of creation as positions. No id is empty, so `''` sorts before all ids of a timestamp. */
const creationBounds = (filter: UserFilter) => {
  const { after, before } = creation(filter)
  return {
    low: after === null ? null : { key: after + 1, id: '' },
    high: before === null ? null : { key: before, id: '' },
  }
}

type SortedQuery = Pick<UserQuery, 'filter' | 'sort' | 'after'>

/** Bounds the index of a sort order by the cursor, and by creation when the list is sorted by it. */
const sortBounds = ({ filter, sort: { field, descending }, after }: SortedQuery) => {
  if (field !== 'createdAt') {
    return { after, upTo: null, matching: (users: Users) => filtered(users, filter) }
  }
  const { low, high } = creationBounds(filter)
  return {
    after: laterPosition(after, descending ? high : low, descending),
    upTo: descending ? low : high,
    matching: (users: Users) => filteredBesidesCreation(users, filter),
  }
}

/** All users in the order of a list, from its cursor on. With a role in the order of creation: all users with the role. */
export const sortedRange = (query: SortedQuery): IndexRange => {
  const { filter, sort } = query
  if (filter.role !== undefined && sort.field === 'createdAt') return roleRange(query, filter.role)
  const column = SORT_COLUMNS[sort.field]
  return {
    index: `users_by_${column}`,
    column,
    descending: sort.descending,
    ...sortBounds(query),
    firstRows: firstRows(filter, filter.search === undefined || filter.searchEmail === true),
  }
}

const roleRange = ({ filter, sort, after }: SortedQuery, role: string): IndexRange => {
  const { role: _, ...others } = filter
  return {
    index: 'user_roles',
    role,
    column: 'created_at',
    descending: sort.descending,
    ...sortBounds({ filter: others, sort, after }),
    firstRows: FEW_ROWS,
  }
}

const OLDEST_FIRST = { field: 'createdAt', descending: false } as const

/** The users created within the filter's bounds, of those with the filter's role. */
export const creationRange = (filter: UserFilter): IndexRange =>
  sortedRange({ filter, sort: OLDEST_FIRST, after: null })

/** One range for each searched column. A user who matches in several columns belongs to the first of them. */
const searchPath = (filter: UserFilter, search: string): AccessPath => {
  const { search: _, ...others } = filter
  const { from, before } = searchRange(search)
  const columns = searchColumns(filter)
  return columns.map((column, index) => ({
    index: `users_by_${column}`,
    column,
    descending: false,
    // No id is empty: these positions are before the first row of their key.
    after: { key: from, id: '' },
    upTo: before === null ? null : { key: before, id: '' },
    matching: users =>
      filtered(users, others).where(eb => eb.not(startsWith(search, columns.slice(0, index))(eb))),
    firstRows: firstRows(filter, column === 'email'),
  }))
}

/** Sorts after every id: ids consist of digits, letters up to `f`, and hyphens. */
const BEHIND_IDS = 'g'

/** The users with a value of a field, whose index has its column and the id. */
const fieldRange = (filter: UserFilter, column: FieldColumn, value: string): IndexRange => ({
  index: `users_by_${column}`,
  column,
  descending: false,
  after: { key: value, id: '' },
  upTo: { key: value, id: BEHIND_IDS },
  matching: users => filtered(users, filter),
  firstRows: FEW_ROWS,
})

const disabledRange = ({ disabled: _, ...others }: UserFilter): IndexRange => {
  const { low, high } = creationBounds(others)
  return {
    index: 'users_disabled',
    column: 'created_at',
    descending: false,
    after: low,
    upTo: high,
    matching: users => filteredBesidesCreation(users, others),
    firstRows: firstRows(others, false),
  }
}

/** That of a role always is. Otherwise the range of disabled users has the same bounds and is smaller. */
const hasCreationRange = (filter: UserFilter): boolean => {
  const { after, before } = creation(filter)
  return filter.role !== undefined || (!filter.disabled && (after !== null || before !== null))
}

/** The access paths that may be much smaller than the whole table. @param sortedBy the field whose index is read anyway; `null` for none. */
export const selectivePaths = (filter: UserFilter, sortedBy: SortField | null): readonly AccessPath[] => [
  ...(filter.search === undefined ? [] : [searchPath(filter, filter.search)]),
  ...filteredColumns(filter).map(({ column, value }) => [fieldRange(filter, column, value)]),
  ...(filter.disabled ? [[disabledRange(filter)]] : []),
  ...(sortedBy !== 'createdAt' && hasCreationRange(filter) ? [[creationRange(filter)]] : []),
]

// SQLite uses a partial index only if the query contains the index's condition literally.
const ONLY_DISABLED = 'disabled = 1'

export const positionColumns = ({ index, column }: IndexRange): OrderColumns =>
  index === 'user_roles' ? ROLE_ORDER : [`users.${column}`, 'users.id']

/** `CROSS JOIN` reads `user_roles` first, in the order of its primary key. */
const ROLES_FIRST = sql<UsersTable>`user_roles`.as<'users'>(
  sql.raw('user_roles CROSS JOIN users ON users.key = user_roles.user_key'),
)

/** `INDEXED BY`, because SQLite's planner sometimes sorts although the index has the order. */
const indexedUsers = (index: string) =>
  sql<UsersTable>`users`.as<'users'>(sql.raw(`users INDEXED BY ${index}`))

export const usersInRange = (range: IndexRange): Users => {
  const { index, role, descending, after, upTo } = range
  const position = `(${positionColumns(range).join(', ')})`
  const isAfter = sql.raw(`${position} ${descending ? '<' : '>'} `)
  const isUpTo = sql.raw(`${position} ${descending ? '>=' : '<='} `)
  const table = index === 'user_roles' ? ROLES_FIRST : indexedUsers(index)
  let users = queries.selectFrom(table) as unknown as Users
  if (role !== undefined) users = users.where(sql<boolean>`user_roles.role = ${role}`)
  if (after !== null) users = users.where(sql<boolean>`${isAfter}(${after.key}, ${after.id})`)
  if (upTo !== null) users = users.where(sql<boolean>`${isUpTo}(${upTo.key}, ${upTo.id})`)
  if (index === 'users_disabled') users = users.where(sql.raw<boolean>(ONLY_DISABLED))
  return range.matching(users)
}

/** The last position of a slice of `rows` rows; no row if the range has fewer. As text: Kysely would take as long as the query. */
export const sliceEndQuery = (range: IndexRange, rows: number) => {
  const { index, role, descending, after, upTo } = range
  const [key, id] = positionColumns(range)
  const direction = descending ? 'DESC' : 'ASC'
  const conditions = [
    ...(role === undefined ? [] : ['role = ?']),
    ...(after === null ? [] : [`(${key}, ${id}) ${descending ? '<' : '>'} (?, ?)`]),
    ...(upTo === null ? [] : [`(${key}, ${id}) ${descending ? '>=' : '<='} (?, ?)`]),
    ...(index === 'users_disabled' ? [ONLY_DISABLED] : []),
  ]
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  const bounds = [after, upTo].flatMap(position => (position === null ? [] : [position.key, position.id]))
  return {
    sql: `SELECT ${key} AS key, ${id} AS id FROM ${index === 'user_roles' ? index : `users INDEXED BY ${index}`} ${where}
      ORDER BY ${key} ${direction}, ${id} ${direction} LIMIT 1 OFFSET ?`,
    parameters: [...(role === undefined ? [] : [role]), ...bounds, rows - 1],
  }
}

const MIN_ROWS = 32
const MAX_ROWS = 2_000

/** Milliseconds that a slice should take. */
const SLICE_TIME = 1

const nextRows = (rows: number, duration: number): number =>
  duration < SLICE_TIME
    ? Math.min(rows * 2, MAX_ROWS)
    : Math.max(Math.floor((rows * SLICE_TIME) / duration), MIN_ROWS)

/** Divides an access path into slices. @param visit called with each slice; returns true to stop. */
export function* eachSlice(
  reader: Reader,
  path: AccessPath,
  visit: (slice: IndexRange) => boolean,
): SlicedTask<void> {
  for (const range of path) {
    let rows = range.firstRows
    for (let rest: IndexRange | null = range; rest !== null; ) {
      const start = performance.now()
      const { sql, parameters } = sliceEndQuery(rest, rows)
      const end = reader.get<Position>(sql, ...parameters)
      const isDone = visit(end === undefined ? rest : { ...rest, upTo: end })
      if (isDone || (end === undefined && range === path.at(-1))) return
      rest = end === undefined ? null : { ...rest, after: end }
      rows = nextRows(rows, performance.now() - start)
      yield
    }
  }
}
