/** Lists, counts and exports of users (docs/design.md, "Contract"), in slices that never block the event loop for long. */
import { sql } from 'kysely'
import { queryBuilder } from '#storage/sqlite/query-builder'
import type { Reader } from '#storage/sqlite/reader'
import type { SlicedTask } from '#storage/sqlite/time-slicer'
import { featureMethodsColumn } from '../accounts/sign-in-tables.ts'
import type { DatabaseSchema } from '../store/tables.ts'
import type { Position, SignInTables, UserFilter, UserQuery } from './listing.ts'
import {
  countQuery,
  EXPORTED_METADATA,
  METADATA_BYTES,
  onPage,
  pageQuery,
  SORT_COLUMNS,
  type Users,
} from './listing-queries.ts'
import {
  type AccessPath,
  comparePositions,
  creationRange,
  eachSlice,
  type IndexRange,
  positionColumns,
  selectivePaths,
  sortedRange,
  usersInRange,
} from './sqlite-access-paths.ts'
import type { User, UserWithHash } from './user.ts'
import { START, selectUser, toListedUser, toUserWithHash, type UserRowWithHash } from './user-rows.ts'

const queries = queryBuilder<DatabaseSchema>()

/** Users by id. The ids are one JSON parameter, so that one statement serves any number of them. */
const withIds = (ids: readonly string[]): Users =>
  queries
    .selectFrom('users')
    .where('users.id', 'in', sql<string>`(SELECT value FROM json_each(${JSON.stringify(ids)}))`)

/** A filter by id or e-mail, whose few possible matches a unique index finds, and the remaining conditions; `null` for other filters. */
export const uniqueLookup = ({ ids, ...filter }: UserFilter): { users: Users; filter: UserFilter } | null => {
  if (ids !== undefined) return { users: withIds(ids), filter }
  return filter.email === undefined ? null : { users: queries.selectFrom('users'), filter }
}

/** Runs a slice of each task in turn. @returns the result of the first task that completes. */
function* firstCompleted<Result>(tasks: readonly SlicedTask<Result>[]): SlicedTask<Result> {
  for (;;) {
    for (const task of tasks) {
      const slice = task.next()
      if (slice.done) return slice.value
      yield
    }
  }
}

/** Reads users in the order of the list until the page is full: fast when many users match. */
function* scanInOrder(reader: Reader, query: UserQuery): SlicedTask<readonly User[]> {
  // By id: a change between two slices may have moved a user into the next one.
  const page = new Map<string, User>()
  yield* eachSlice(reader, [sortedRange(query)], slice => {
    const rest = { ...query, filter: {}, after: null, limit: query.limit - page.size }
    for (const row of reader.all(pageQuery(usersInRange(slice), rest, positionColumns(slice))))
      page.set(row.id, toListedUser(row))
    return page.size === query.limit
  })
  return [...page.values()]
}

/** Each user once, as in `scanInOrder`. */
const firstPositions = (positions: readonly Position[], { sort, limit }: UserQuery): readonly Position[] => {
  const sign = sort.descending ? -1 : 1
  return [...new Map(positions.map(position => [position.id, position])).values()]
    .sort((a, b) => sign * comparePositions(a, b))
    .slice(0, limit)
}

/** The first matches of a slice whose index has another order: sorted by columns of that index. */
export const firstMatchesQuery = (slice: IndexRange, query: UserQuery) =>
  onPage(usersInRange(slice).select([`${SORT_COLUMNS[query.sort.field]} as key`, 'users.id']), {
    ...query,
    filter: {},
  })

export const usersAtQuery = (positions: readonly Position[], query: UserQuery) =>
  pageQuery(withIds(positions.map(({ id }) => id)), { ...query, filter: {}, after: null })

/** Reads all matches and keeps the first ones: fast when few users match. */
function* scanMatches(reader: Reader, query: UserQuery, path: AccessPath): SlicedTask<readonly User[]> {
  let first: readonly Position[] = []
  yield* eachSlice(reader, path, slice => {
    first = firstPositions([...first, ...reader.all(firstMatchesQuery(slice, query))], query)
    return false
  })
  return reader.all(usersAtQuery(first, query)).map(toListedUser)
}

/**
 * Which access path is the shortest is not known in advance, so all of them run in turn: a page costs at most the cheapest path times the
 * number of paths.
 */
export function* listUsers(reader: Reader, query: UserQuery): SlicedTask<readonly User[]> {
  const lookup = uniqueLookup(query.filter)
  if (lookup !== null)
    return reader.all(pageQuery(lookup.users, { ...query, filter: lookup.filter })).map(toListedUser)
  const paths = selectivePaths(query.filter, query.sort.field)
  return yield* firstCompleted([
    scanInOrder(reader, query),
    ...paths.map(path => scanMatches(reader, query, path)),
  ])
}

const countMatches = (reader: Reader, users: Users, filter: UserFilter): number =>
  reader.all(countQuery(users, filter))[0]?.total ?? 0

function* countPath(reader: Reader, path: AccessPath): SlicedTask<number> {
  let total = 0
  yield* eachSlice(reader, path, slice => {
    total += countMatches(reader, usersInRange(slice), {})
    return false
  })
  return total
}

/** The number of matches, counted by the shortest access path. */
export function* countUsers(reader: Reader, filter: UserFilter): SlicedTask<number> {
  const lookup = uniqueLookup(filter)
  if (lookup !== null) return countMatches(reader, lookup.users, lookup.filter)
  const selective = selectivePaths(filter, null)
  const paths = selective.length === 0 ? [[creationRange(filter)]] : selective
  return yield* firstCompleted(paths.map(path => countPath(reader, path)))
}

/** Slices, of about a millisecond, for an exact count; then for a sample. */
const COUNT_SLICES = 20
const SAMPLE_SLICES = 20

/** Consecutive numbers of users in a slice of a sample. */
const SAMPLE_SIZE = 200

/** Where a slice begins in its stretch of numbers, from 0 to 1: spread evenly, without a period that users could share. */
const offsetOf = (slice: number): number => (slice * 0.618_033_988_749_895) % 1

/**
 * A count if that ends soon, else an estimate from a sample of all users, who are numbered from 1 on. Every filter has the same sample: a
 * part is never larger than the whole.
 */
export function* estimateUsers(
  reader: Reader,
  filter: UserFilter,
  countSlices = COUNT_SLICES,
): SlicedTask<number> {
  const count = countUsers(reader, filter)
  for (let slices = 0; slices < countSlices; slices += 1) {
    const slice = count.next()
    if (slice.done) return slice.value
    yield
  }
  const last = reader.get<{ key: number | null }>('SELECT max(key) AS key FROM users')?.key ?? 0
  let matches = 0
  for (let slices = 0; slices < SAMPLE_SLICES; slices += 1) {
    // One of each stretch of numbers: users who signed up at the same time have much in common.
    const from = Math.floor(((slices + offsetOf(slices)) / SAMPLE_SLICES) * Math.max(0, last - SAMPLE_SIZE))
    const users = queries
      .selectFrom('users')
      .where('users.key', '>', from)
      .where('users.key', '<=', from + SAMPLE_SIZE)
    matches += countMatches(reader, users, filter)
    yield
  }
  return Math.round((matches / (SAMPLE_SLICES * SAMPLE_SIZE)) * last)
}

/** The inner query finds the last user by lengths alone. */
const exportText = (
  ...columns: readonly string[]
): string => `${selectUser('password_hash', ...columns)} WHERE key IN (
    SELECT key FROM (
      SELECT key, sum(bytes) OVER (ORDER BY created_at, id) - bytes AS bytes_before FROM (
        SELECT key, created_at, id, ${METADATA_BYTES} AS bytes FROM users
        WHERE (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?
      )
    ) WHERE bytes_before < ${EXPORTED_METADATA}
  ) ORDER BY created_at, id`

export const EXPORT_USERS = exportText()

/** Users of a page: about two milliseconds of the event loop, with serialization. */
const EXPORT_PAGE = 200

export function* exportUsers(
  reader: Reader,
  after: Position | null,
  signInTables?: SignInTables,
): SlicedTask<readonly UserWithHash[]> {
  // Yields before its only slice: a fast client would otherwise get page after page within one round of the event loop.
  yield
  const { key, id } = after ?? START
  const text = signInTables === undefined ? EXPORT_USERS : exportText(featureMethodsColumn(signInTables))
  return reader.rows<UserRowWithHash>(text, key, id, EXPORT_PAGE).map(toUserWithHash)
}
