/** Pages of lists by keyset pagination: the next page begins behind the last item of the one before. */
import { ServiceError } from './errors.ts'
import { ID } from './ids.ts'

export interface Page<Item> {
  readonly results: readonly Item[]
  /** Opaque; `null` on the last page. */
  readonly nextCursor: string | null
}

/** A cursor for the position behind an item that is found by its id. */
export const cursorAt = ({ id }: { readonly id: string }): string => Buffer.from(id).toString('base64url')

/** @returns the id in a cursor of {@link cursorAt}; `null` without one. @throws {ServiceError} `badCursor` */
export const idOfCursor = (cursor: string | undefined): string | null => {
  if (cursor === undefined) return null
  const id = Buffer.from(cursor, 'base64url').toString('utf8')
  if (!ID.test(id)) throw new ServiceError('badCursor')
  return id
}

/** Whether every store can compare a value as text. */
const isText = (value: unknown): boolean =>
  typeof value === 'string' && value.isWellFormed() && !value.includes('\0')

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** A cursor for the position behind an item of a list with this sort; it is valid for no other one. @param key by which the item is sorted. */
export const cursorOfPosition = (sort: string, key: number | string, id: string): string =>
  Buffer.from(JSON.stringify([sort, key, id])).toString('base64url')

/** @throws {ServiceError} `badCursor` if it is no cursor of a list with this sort, whose keys have this type. */
export const positionOfCursor = <Type extends 'number' | 'string'>(
  sort: string,
  cursor: string,
  type: Type,
): { readonly key: Type extends 'number' ? number : string; readonly id: string } => {
  const parts = parseJson(Buffer.from(cursor, 'base64url').toString('utf8'))
  const [cursorSort, key, id] = Array.isArray(parts) && parts.length === 3 ? parts : []
  const isKey = type === 'number' ? Number.isSafeInteger(key) : isText(key)
  if (cursorSort !== sort || !isKey || typeof id !== 'string' || !ID.test(id))
    throw new ServiceError('badCursor')
  return { key, id }
}

/**
 * One page of a list.
 * @param found one item more than the page has: it shows whether there is a next page.
 * @param limit items per page.
 * @param cursorOf the position behind an item; by default that of its id, for lists that are sorted by it.
 */
export const pageOf = <Item extends { readonly id: string }>(
  found: readonly Item[],
  limit: number,
  cursorOf: (last: Item) => string = cursorAt,
): Page<Item> => {
  const results = found.slice(0, limit)
  const last = results.at(-1)
  return { results, nextCursor: found.length > limit && last !== undefined ? cursorOf(last) : null }
}
