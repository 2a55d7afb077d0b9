/** Keyset pagination of users (DESIGN §4): a page starts after the last row of the one before, so deep pages cost the same. */
import { ServiceError } from '../errors.ts'
import { searchKey, type User } from './user.ts'

export const SORT_FIELDS = ['createdAt', 'firstName', 'lastName'] as const
export type SortField = (typeof SORT_FIELDS)[number]

/** A sort field, with `-` for descending. */
export type Sort = SortField | `-${SortField}`
export const SORTS: readonly Sort[] = SORT_FIELDS.flatMap(field => [field, `-${field}`] as const)

export interface UserFilter {
  /** The start of a first or last name, in any letter case. */
  readonly search?: string
  /** Whether `search` also matches the start of the e-mail: for administrators alone. */
  readonly searchEmail?: boolean
  readonly email?: string
  readonly disabled?: boolean
  /** A lookup: at most {@link MAX_IDS}, as {@link parseIds} gives them. */
  readonly ids?: readonly string[]
  /** Strictly later and strictly earlier; milliseconds since the epoch, as all timestamps. */
  readonly createdAfter?: number
  readonly createdBefore?: number
  readonly lastRequestAfter?: number
  /**
   * Who was there before this timestamp, and has made no request since. Also who never made one: they are inactive too. Not who
   * signed up later: whoever disables what this finds would meet everybody who has just come.
   */
  readonly lastRequestBefore?: number
}

/** Ids in one lookup: as many as the longest page has users. */
export const MAX_IDS = 100

/** The ids of a list with commas between them, each once, in the one form in which they are kept (RFC 9562 §4). */
export const parseIds = (list: string): readonly string[] => [...new Set(list.toLowerCase().split(','))]

/** Where a page starts: the sort key and the id of the last row before it. */
export interface Position {
  readonly key: number | string
  readonly id: string
}

export interface UserQuery {
  readonly filter: UserFilter
  readonly sort: { readonly field: SortField; readonly descending: boolean }
  readonly after: Position | null
  readonly limit: number
}

export interface Page {
  readonly users: readonly User[]
  /** Opaque; `null` on the last page. */
  readonly nextCursor: string | null
}

export const parseSort = (sort: Sort): UserQuery['sort'] => {
  const descending = sort.startsWith('-')
  return { field: (descending ? sort.slice(1) : sort) as SortField, descending }
}

/** The value by which a user stands in a list sorted by `field`. */
export const sortKey = (user: User, field: SortField): number | string =>
  field === 'createdAt' ? user.createdAt : searchKey(user[field])

/** The position after `user`, with the sort it belongs to: a cursor is of no use in a list sorted otherwise. */
export const encodeCursor = (sort: Sort, user: User): string =>
  Buffer.from(JSON.stringify([sort, sortKey(user, parseSort(sort).field), user.id])).toString('base64url')

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Text that every store can compare. */
const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.isWellFormed() && !value.includes('\0')

/** @throws {ServiceError} `badCursor` for anything that is not a cursor of a list with this sort. */
export const decodeCursor = (sort: Sort, cursor: string): Position => {
  const parts = parseJson(Buffer.from(cursor, 'base64url').toString('utf8'))
  if (!Array.isArray(parts) || parts.length !== 3) throw new ServiceError('badCursor')
  const [cursorSort, key, id] = parts as unknown[]
  const expected = parseSort(sort).field === 'createdAt' ? Number.isSafeInteger(key) : isText(key)
  if (cursorSort !== sort || !expected || !isText(id)) throw new ServiceError('badCursor')
  return { key: key as number | string, id }
}
