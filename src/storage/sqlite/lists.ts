/** Lists and counts of users (DESIGN §4) that never hold the event loop for long, whatever is stored and asked for. */
import { sql } from 'kysely'
import type { Position, UserFilter, UserQuery } from '../../users/listing.ts'
import type { User } from '../../users/user.ts'
import { toUser } from '../rows.ts'
import { countQuery, onPage, pageQuery, SORT_COLUMNS, type Users } from '../user-queries.ts'
import {
  byCreation,
  comparePositions,
  covers,
  eachSlice,
  type IndexRange,
  inOrder,
  usersIn,
} from './access-paths.ts'
import { queries } from './queries.ts'
import type { Reader } from './reader.ts'
import type { Task } from './time-slicer.ts'

/** The first of some positions, each user once: between two slices a change may have moved one into the next. */
const firstOf = (positions: readonly Position[], { sort, limit }: UserQuery): readonly Position[] => {
  const sign = sort.descending ? -1 : 1
  return [...new Map(positions.map(position => [position.id, position])).values()]
    .sort((a, b) => sign * comparePositions(a, b))
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
export const firstOfSlice = (slice: IndexRange, query: UserQuery) =>
  onPage(usersIn(slice).select([`${SORT_COLUMNS[query.sort.field]} as key`, 'users.id']), {
    ...query,
    filter: {},
  })

/** The users who have some ids: one parameter, so that one statement serves any number of them. */
const withIds = (ids: readonly string[]): Users =>
  queries
    .selectFrom('users')
    .where('users.id', 'in', sql<string>`(SELECT value FROM json_each(${JSON.stringify(ids)}))`)

/** The users at some positions, in the order of the list. */
export const usersAt = (positions: readonly Position[], query: UserQuery) =>
  pageQuery(withIds(positions.map(({ id }) => id)), { ...query, filter: {}, after: null })

/** All the matches, keeping the first ones: short where few match. */
function* gather(reader: Reader, query: UserQuery, cover: readonly IndexRange[]): Task<readonly User[]> {
  let first: readonly Position[] = []
  yield* eachSlice(reader, cover, slice => {
    first = firstOf([...first, ...reader.all(firstOfSlice(slice, query))], query)
    return false
  })
  return reader.all(usersAt(first, query)).map(toUser)
}

/** A unique index has the few who may match: what is left to ask of them. `null` when the filter names nobody. */
export const named = ({ ids, ...filter }: UserFilter): { users: Users; filter: UserFilter } | null => {
  if (ids !== undefined) return { users: withIds(ids), filter }
  return filter.email === undefined ? null : { users: queries.selectFrom('users'), filter }
}

/** The outcome of whichever way is done first, a slice of each in turn. */
function* shortest<Result>(ways: readonly Task<Result>[]): Task<Result> {
  for (;;) {
    for (const way of ways) {
      const slice = way.next()
      if (slice.done) return slice.value
      yield
    }
  }
}

/**
 * One page. Which way is the short one shows in going: they take turns, so that a page costs at most as many times the
 * cheapest way as there are ways, also where all the matches are at the far end of the order.
 */
export function* page(reader: Reader, query: UserQuery): Task<readonly User[]> {
  const few = named(query.filter)
  if (few !== null) return reader.all(pageQuery(few.users, { ...query, filter: few.filter })).map(toUser)
  const gathered = covers(query.filter, query.sort.field).map(cover => gather(reader, query, cover))
  return yield* shortest([walk(reader, query), ...gathered])
}

const counted = (reader: Reader, users: Users, filter: UserFilter): number =>
  reader.all(countQuery(users, filter))[0]?.total ?? 0

function* countIn(reader: Reader, cover: readonly IndexRange[]): Task<number> {
  let total = 0
  yield* eachSlice(reader, cover, slice => {
    total += counted(reader, usersIn(slice), {})
    return false
  })
  return total
}

/** How many match: counted in the smallest part of an index that has all of them, which shows in going as for a page. */
export function* count(reader: Reader, filter: UserFilter): Task<number> {
  const few = named(filter)
  if (few !== null) return counted(reader, few.users, few.filter)
  const small = covers(filter, null)
  const ways = small.length === 0 ? [[byCreation(filter)]] : small
  return yield* shortest(ways.map(cover => countIn(reader, cover)))
}
