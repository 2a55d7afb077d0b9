/** Indexes of users read in slices, a bounded number of rows at a time, however few of them match. */
import { sql } from 'kysely'
import type { Position, SortField, UserFilter, UserQuery } from '../../users/listing.ts'
import type { UsersTable } from '../schema.ts'
import {
  creation,
  filtered,
  filteredBesidesCreation,
  SORT_COLUMNS,
  searchColumns,
  searchRange,
  startsWith,
  type Users,
} from '../user-queries.ts'
import { queries } from './queries.ts'
import type { Reader } from './reader.ts'
import type { Task } from './time-slicer.ts'

/** By size, or by code points as SQLite does. */
const compare = (a: number | string, b: number | string): number =>
  typeof a === 'number' || typeof b === 'number'
    ? Number(a) - Number(b)
    : Buffer.compare(Buffer.from(a), Buffer.from(b))

/** As rows lie in an index that is read upwards. */
export const comparePositions = (a: Position, b: Position): number =>
  compare(a.key, b.key) || compare(a.id, b.id)

type KeyColumn = 'created_at' | 'first_name_key' | 'last_name_key' | 'email'

/** Rows that lie side by side in an index by `column` and id. */
export interface IndexRange {
  readonly index: `users_by_${KeyColumn}` | 'users_disabled'
  readonly column: KeyColumn
  readonly descending: boolean
  /** The row before the first one; `null` for the start of the index. */
  readonly after: Position | null
  /** The last row; `null` for the end of the index. */
  readonly upTo: Position | null
  /** Leaves out what is in the part, but does not match. */
  readonly matching: (users: Users) => Users
  /** How many rows the first slice examines. */
  readonly firstRows: number
}

/**
 * Bounds of the later slices. In memory a row takes between 0.2 and 2 µs, depending on whether the index has all that is
 * asked of it; one that has to come from the disk about 80.
 */
const MIN_ROWS = 32
const MAX_ROWS = 2_000

/** Milliseconds that a slice is meant to take. */
const SLICE_TIME = 1

const nextRows = (rows: number, took: number): number =>
  took < SLICE_TIME
    ? Math.min(rows * 2, MAX_ROWS)
    : Math.max(Math.floor((rows * SLICE_TIME) / took), MIN_ROWS)

// SQLite takes a partial index only where its condition is in the query as it stands.
const ONLY_DISABLED = 'disabled = 1'

/** The matches in a part. By its index: SQLite's planner would now and then sort what the index has in order. */
export const usersIn = (part: IndexRange): Users => {
  const { index, column, descending, after, upTo } = part
  const by = sql<UsersTable>`users`.as<'users'>(sql.raw(`users INDEXED BY ${index}`))
  const beyond = sql.raw(`(users.${column}, users.id) ${descending ? '<' : '>'} `)
  const within = sql.raw(`(users.${column}, users.id) ${descending ? '>=' : '<='} `)
  let rows = queries.selectFrom(by) as unknown as Users
  if (after !== null) rows = rows.where(sql<boolean>`${beyond}(${after.key}, ${after.id})`)
  if (upTo !== null) rows = rows.where(sql<boolean>`${within}(${upTo.key}, ${upTo.id})`)
  if (index === 'users_disabled') rows = rows.where(sql.raw<boolean>(ONLY_DISABLED))
  return part.matching(rows)
}

/**
 * The query for where a slice ends; without a row when the part has fewer. It reads nothing but the index, 75 µs for 1,000
 * rows, and is written by hand because it is run for every slice: Kysely takes as long to write it.
 */
export const sliceEnd = ({ index, column, descending, after, upTo }: IndexRange, rows: number) => {
  const direction = descending ? 'DESC' : 'ASC'
  const conditions = [
    ...(after === null ? [] : [`(${column}, id) ${descending ? '<' : '>'} (?, ?)`]),
    ...(upTo === null ? [] : [`(${column}, id) ${descending ? '>=' : '<='} (?, ?)`]),
    ...(index === 'users_disabled' ? [ONLY_DISABLED] : []),
  ]
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  const bounds = [after, upTo].flatMap(position => (position === null ? [] : [position.key, position.id]))
  return {
    sql: `SELECT ${column} AS key, id FROM users INDEXED BY ${index} ${where}
      ORDER BY ${column} ${direction}, id ${direction} LIMIT 1 OFFSET ?`,
    parameters: [...bounds, rows - 1],
  }
}

/** Shows `visit` one slice after another, until it says that it has seen enough. */
export function* eachSlice(
  reader: Reader,
  parts: readonly IndexRange[],
  visit: (slice: IndexRange) => boolean,
): Task<void> {
  for (const part of parts) {
    let rows = part.firstRows
    for (let rest: IndexRange | null = part; rest !== null; ) {
      const start = performance.now()
      const { sql, parameters } = sliceEnd(rest, rows)
      const end = reader.get<Position>(sql, ...parameters)
      const enough = visit(end === undefined ? rest : { ...rest, upTo: end })
      if (enough || (end === undefined && part === parts.at(-1))) return
      rest = end === undefined ? null : { ...rest, after: end }
      rows = nextRows(rows, performance.now() - start)
      yield
    }
  }
}

/** Which parts of which indexes have all the matches of a filter. */

/**
 * Rows in a first slice. Few fill nearly every page that is not searched, and are what is begun with where rows of a table
 * are examined, which may have to come from the disk; many where the index has all that is asked of it.
 */
const FEW_ROWS = 128
const MANY_ROWS = 1_000

/** Whether timestamps of last requests are looked up, in a table that no index of users covers. */
const looksUpRequests = ({ lastRequestAfter, lastRequestBefore }: UserFilter): boolean =>
  lastRequestAfter !== undefined || lastRequestBefore !== undefined

/** Rows in the first slice of a part with all the matches. */
const firstRows = (filter: UserFilter, fromTable: boolean): number =>
  fromTable || looksUpRequests(filter) ? FEW_ROWS : MANY_ROWS

/** Where those whom a filter lets through by their creation lie in an index by it. No id is empty: before all of a timestamp. */
const creationBounds = (filter: UserFilter) => {
  const { after, before } = creation(filter)
  return {
    low: after === null ? null : { key: after + 1, id: '' },
    high: before === null ? null : { key: before, id: '' },
  }
}

/** Whichever comes later on the way through an index. */
const later = (a: Position | null, b: Position | null, descending: boolean): Position | null => {
  if (a === null || b === null) return a ?? b
  return comparePositions(a, b) > 0 === descending ? b : a
}

type Order = Pick<UserQuery, 'filter' | 'sort' | 'after'>

/** How an index is read by a sort: within the bounds of creation where it is by that. */
const extent = ({ filter, sort: { field, descending }, after }: Order) => {
  if (field !== 'createdAt') {
    return { after, upTo: null, matching: (users: Users) => filtered(users, filter) }
  }
  const { low, high } = creationBounds(filter)
  return {
    after: later(after, descending ? high : low, descending),
    upTo: descending ? low : high,
    matching: (users: Users) => filteredBesidesCreation(users, filter),
  }
}

/** Everybody, in the order of a list from its position on. */
export const inOrder = (order: Order): IndexRange => {
  const { filter, sort } = order
  const column = SORT_COLUMNS[sort.field]
  return {
    index: `users_by_${column}`,
    column,
    descending: sort.descending,
    ...extent(order),
    firstRows: firstRows(filter, filter.search === undefined || filter.searchEmail === true),
  }
}

const OLDEST_FIRST = { field: 'createdAt', descending: false } as const

/** Everybody who was created within the filter's bounds. */
export const byCreation = (filter: UserFilter): IndexRange =>
  inOrder({ filter, sort: OLDEST_FIRST, after: null })

/** The range of each column that is searched; a user who is found by several is taken for the first. */
const found = (filter: UserFilter, search: string): readonly IndexRange[] => {
  const { search: _, ...others } = filter
  const { from, before } = searchRange(search)
  const columns = searchColumns(filter)
  return columns.map((column, index) => ({
    index: `users_by_${column}`,
    column,
    descending: false,
    // No id is empty: these lie before the first row of their key.
    after: { key: from, id: '' },
    upTo: before === null ? null : { key: before, id: '' },
    matching: users =>
      filtered(users, others).where(eb => eb.not(startsWith(search, columns.slice(0, index))(eb))),
    firstRows: firstRows(filter, column === 'email'),
  }))
}

/** An index by creation, too. */
const disabled = ({ disabled: _, ...others }: UserFilter): IndexRange => {
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

/** Whether creation has bounds that nothing smaller has: those who are disabled have them too. */
const isBounded = (filter: UserFilter): boolean => {
  const { after, before } = creation(filter)
  return !filter.disabled && (after !== null || before !== null)
}

/**
 * The covers that may be much smaller than all users; the parts of each are disjoint.
 * @param walked what a list is walked along by, within whose bounds that walk is already.
 */
export const covers = (filter: UserFilter, walked: SortField | null): readonly (readonly IndexRange[])[] => [
  ...(filter.search === undefined ? [] : [found(filter, filter.search)]),
  ...(filter.disabled ? [[disabled(filter)]] : []),
  ...(walked !== 'createdAt' && isBounded(filter) ? [[byCreation(filter)]] : []),
]
