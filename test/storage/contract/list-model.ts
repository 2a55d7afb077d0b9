/** A model of lists: computed in memory, to compare with an engine's results. */

import type { Storage } from '#core/store/store'
import { type Position, parseSort, type Sort, sortKey, type UserFilter } from '#core/users/listing'
import { searchKey, type User } from '#core/users/user'

/** Numbers by size, text by its UTF-8 bytes: the order that every engine provides. */
const compare = (a: number | string, b: number | string): number =>
  typeof a === 'number' || typeof b === 'number'
    ? Number(a) - Number(b)
    : Buffer.compare(Buffer.from(a), Buffer.from(b))

/** @returns the ids of users in the order of a list. */
export const inOrder = (users: readonly User[], sort: Sort): readonly string[] => {
  const { field, descending } = parseSort(sort)
  const ordered = users
    .map(user => ({ id: user.id, key: sortKey(user, field) }))
    .sort((a, b) => compare(a.key, b.key) || compare(a.id, b.id))
  return (descending ? ordered.reverse() : ordered).map(({ id }) => id)
}

/** Whether a user existed before a timestamp, and has made no request since. */
const inactiveSince = (timestamp: number, { createdAt, lastRequestAt }: User): boolean =>
  createdAt < timestamp && (lastRequestAt === null || lastRequestAt < timestamp)

/** Whether the timestamps of a user match a filter. */
const matchesTimestamps = (filter: UserFilter, user: User): boolean => {
  const { createdAfter, createdBefore, lastRequestAfter, lastRequestBefore } = filter
  return (
    (createdAfter === undefined || user.createdAt > createdAfter) &&
    (createdBefore === undefined || user.createdAt < createdBefore) &&
    (lastRequestAfter === undefined || (user.lastRequestAt ?? -1) > lastRequestAfter) &&
    (lastRequestBefore === undefined || inactiveSince(lastRequestBefore, user))
  )
}

/** Whether a user matches a filter. */
export const matches =
  ({ search, searchEmail, email, disabled, role, ids, ...timestamps }: UserFilter) =>
  (user: User): boolean => {
    const searched = [user.firstName, user.lastName, ...(searchEmail ? [user.email] : [])]
    return (
      matchesTimestamps(timestamps, user) &&
      (ids === undefined || ids.includes(user.id)) &&
      (disabled === undefined || user.disabled === disabled) &&
      (role === undefined || user.roles.includes(role)) &&
      (email === undefined || user.email === email.toLowerCase()) &&
      (search === undefined || searched.some(text => searchKey(text).startsWith(searchKey(search))))
    )
  }

/** Reads all pages. @returns the ids in the order of the pages. */
export const readAll = async (storage: Storage, sort: Sort, limit: number, filter: UserFilter = {}) => {
  const parsed = parseSort(sort)
  const ids: string[] = []
  let after: Position | null = null
  for (;;) {
    const page: readonly User[] = await storage.users.list({ filter, sort: parsed, after, limit })
    const last = page.at(-1)
    if (page.length > limit) throw new Error(`a page of ${limit} has ${page.length} users`)
    if (last === undefined) return ids
    ids.push(...page.map(({ id }) => id))
    after = { key: sortKey(last, parsed.field), id: last.id }
  }
}
