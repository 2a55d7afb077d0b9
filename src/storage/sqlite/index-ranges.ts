/** Indexes of users read in slices, a bounded number of rows at a time, however few of them match. */
import { sql } from 'kysely'
import type { Position } from '../../users/listing.ts'
import type { UsersTable } from '../schema.ts'
import type { Users } from '../user-queries.ts'
import { queries } from './query-builder.ts'
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
