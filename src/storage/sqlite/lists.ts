/** Lists and counts of users (DESIGN §4) that never hold the event loop for long, whatever is stored and asked for. */
import { sql } from 'kysely'
import type { User } from '../../users/user.ts'
import type { Position, UserFilter, UserQuery } from '../../users/user-list.ts'
import { toUser } from '../rows.ts'
import { countQuery, onPage, pageQuery, SORT_COLUMNS, type Users } from '../user-queries.ts'
import { covers, inOrder } from './index-covers.ts'
import { eachSlice, type IndexPart, usersIn } from './index-parts.ts'
import { queries, type Reader } from './reader.ts'
import type { Task } from './turns.ts'

/** By size, or by code points as SQLite does. */
const compare = (a: number | string, b: number | string): number =>
  typeof a === 'number' || typeof b === 'number'
    ? Number(a) - Number(b)
    : Buffer.compare(Buffer.from(a), Buffer.from(b))

/** The first of some positions, each user once: between two slices a change may have moved one into the next. */
const firstOf = (positions: readonly Position[], { sort, limit }: UserQuery): readonly Position[] => {
  const sign = sort.descending ? -1 : 1
  return [...new Map(positions.map(position => [position.id, position])).values()]
    .sort((a, b) => sign * (compare(a.key, b.key) || compare(a.id, b.id)))
    .slice(0, limit)
}

/** In the order of the list until the page is full: short where many match. */
function* walk(reader: Reader, query: UserQuery): Task<readonly User[]> {
  // By id, for the same reason as in `firstOf`.
  const page = new Map<string, User>()
  yield* eachSlice(reader, [inOrder(query)], slice => {
    const rest = { ...query, filter: {}, after: null, limit: query.limit - page.size }
    for (const row of reader.all(pageQuery(usersIn(slice), rest))) page.set(row.id, toUser(row))
    return page.size === query.limit
  })
  return [...page.values()]
}

/** The first matches of a slice whose index has another order: sorted from what is in the index. */
export const firstOfSlice = (slice: IndexPart, query: UserQuery) =>
  onPage(usersIn(slice).select([`${SORT_COLUMNS[query.sort.field]} as key`, 'users.id']), {
    ...query,
    filter: {},
  })

/** The users at some positions, in the order of the list. */
export const usersAt = (positions: readonly Position[], query: UserQuery) => {
  const ids = JSON.stringify(positions.map(({ id }) => id))
  const users = queries
    .selectFrom('users')
    .where('users.id', 'in', sql<string>`(SELECT value FROM json_each(${ids}))`)
  return pageQuery(users, { ...query, filter: {}, after: null })
}

/** All the matches, keeping the first ones: short where few match. */
function* gather(reader: Reader, query: UserQuery, cover: readonly IndexPart[]): Task<readonly User[]> {
  let first: readonly Position[] = []
  yield* eachSlice(reader, cover, slice => {
    first = firstOf([...first, ...reader.all(firstOfSlice(slice, query))], query)
    return false
  })
  return reader.all(usersAt(first, query)).map(toUser)
}

/**
 * One page. Which way is the short one shows in going: they take turns, so that a page costs at most as many times the
 * cheapest way as there are ways, also where all the matches are at the far end of the order.
 */
export function* page(reader: Reader, query: UserQuery): Task<readonly User[]> {
  // At most one user, by a unique index.
  if (query.filter.email !== undefined) {
    return reader.all(pageQuery(queries.selectFrom('users'), query)).map(toUser)
  }
  const ways = [walk(reader, query), ...covers(query.filter).map(cover => gather(reader, query, cover))]
  for (;;) {
    for (const way of ways) {
      const slice = way.next()
      if (slice.done) return slice.value
      yield
    }
  }
}

const BY_CREATION = { field: 'createdAt', descending: false } as const

/** How many match: counted in the smallest part of an index that has all of them. */
export function* count(reader: Reader, filter: UserFilter): Task<number> {
  const counted = (users: Users, rest: UserFilter) => reader.all(countQuery(users, rest))[0]?.total ?? 0
  if (filter.email !== undefined) return counted(queries.selectFrom('users'), filter)
  const [cover = [inOrder({ filter, sort: BY_CREATION, after: null })]] = covers(filter)
  let total = 0
  yield* eachSlice(reader, cover, slice => {
    total += counted(usersIn(slice), {})
    return false
  })
  return total
}
