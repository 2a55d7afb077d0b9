/** Keyset pagination of users (docs/design.md, "Contract"): a page starts after the last row of the previous one. */
import { asciiLowerCase } from '#base/ascii'
import { cursorOfPosition, positionOfCursor } from '#base/pagination'
import type { FilterField } from './fields.ts'
import { searchKey, type User } from './user.ts'

export const SORT_FIELDS = ['createdAt', 'firstName', 'lastName'] as const
export type SortField = (typeof SORT_FIELDS)[number]

export type Sort = SortField | `-${SortField}`
export const SORTS: readonly Sort[] = SORT_FIELDS.flatMap(field => [field, `-${field}`] as const)

export interface UserFilter {
  /** The start of a first or last name, in any letter case. */
  readonly search?: string
  /** Whether `search` also matches the start of the e-mail. Only for administrators. */
  readonly searchEmail?: boolean
  readonly email?: string
  readonly disabled?: boolean
  readonly role?: string
  /** The values as they are stored. */
  readonly fields?: Readonly<Partial<Record<FilterField, string>>>
  /** At most {@link MAX_IDS}, each once, in lower case. */
  readonly ids?: readonly string[]
  /** Strictly later and strictly earlier, in milliseconds since the epoch. */
  readonly createdAfter?: number
  readonly createdBefore?: number
  readonly lastRequestAfter?: number
  /** Users without a request since, created before this time: those who signed up later are not inactive. */
  readonly lastRequestBefore?: number
}

export interface SignInTable {
  readonly method: string
  readonly table: { readonly name: string; readonly owner: string }
  /** Only rows that have one of these texts in a column; `null` for all. */
  readonly rows: { readonly column: string; readonly values: readonly string[] } | null
}

export type SignInTables = readonly SignInTable[]

export const MAX_IDS = 100

/** The ids of a comma-separated list, each once, in lower case as stored (RFC 9562 §4). */
export const parseIds = (list: string): readonly string[] => [...new Set(asciiLowerCase(list).split(','))]

/** The sort key and the id of the last row before a page. */
export interface Position {
  readonly key: number | string
  readonly id: string
}

export interface UserQuery {
  readonly filter: UserFilter
  readonly sort: { readonly field: SortField; readonly descending: boolean }
  readonly after: Position | null
  readonly limit: number
  /** Reads users as if they had no metadata, which may take 16 KiB for each. */
  readonly omitMetadata?: boolean
  /** For `User.featureMethods`. By default users have none. */
  readonly signInTables?: SignInTables
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

export const sortKey = (user: User, field: SortField): number | string =>
  field === 'createdAt' ? user.createdAt : searchKey(user[field])

export const encodeCursor = (sort: Sort, user: User): string =>
  cursorOfPosition(sort, sortKey(user, parseSort(sort).field), user.id)

/** @throws {ServiceError} `badCursor`, also for a cursor of another sort. */
export const decodeCursor = (sort: Sort, cursor: string): Position =>
  positionOfCursor(sort, cursor, parseSort(sort).field === 'createdAt' ? 'number' : 'string')
