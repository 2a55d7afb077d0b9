/** Which parts of which indexes have all the matches of a filter. */
import type { Position, SortField, UserFilter, UserQuery } from '../../users/listing.ts'
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
import { comparePositions, type IndexRange } from './index-ranges.ts'

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
