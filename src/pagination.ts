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
