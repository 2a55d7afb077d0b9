/** Which parts of which indexes have all the matches of a filter. */
import type { UserFilter, UserQuery } from '../../users/user-list.ts'
import { filtered, SORT_COLUMNS, searchColumns, searchRange, startsWith } from '../user-queries.ts'
import type { IndexPart } from './index-parts.ts'

/**
 * Rows in a first slice. Few fill nearly every page that is not searched, and are what is begun with where rows of the table
 * are examined, which may have to come from the disk; many where the index has all that is asked of it.
 */
const FEW_ROWS = 128
const MANY_ROWS = 1_000

/** Everybody, in the order of a list from its position on. */
export const inOrder = ({ filter, sort, after }: Pick<UserQuery, 'filter' | 'sort' | 'after'>): IndexPart => {
  const column = SORT_COLUMNS[sort.field]
  return {
    index: `users_by_${column}`,
    column,
    descending: sort.descending,
    after,
    upTo: null,
    matching: users => filtered(users, filter),
    firstRows: filter.search === undefined || filter.searchEmail ? FEW_ROWS : MANY_ROWS,
  }
}

/** The range of each column that is searched; a user who is found by several is taken for the first. */
const found = (filter: UserFilter, search: string): readonly IndexPart[] => {
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
    firstRows: column === 'email' ? FEW_ROWS : MANY_ROWS,
  }))
}

const disabled = ({ disabled: _, ...others }: UserFilter): IndexPart => ({
  index: 'users_disabled',
  column: 'created_at',
  descending: false,
  after: null,
  upTo: null,
  matching: users => filtered(users, others),
  firstRows: MANY_ROWS,
})

/** The covers that may be much smaller than all users; the parts of each are disjoint. */
export const covers = (filter: UserFilter): readonly (readonly IndexPart[])[] => [
  ...(filter.search === undefined ? [] : [found(filter, filter.search)]),
  ...(filter.disabled ? [[disabled(filter)]] : []),
]
