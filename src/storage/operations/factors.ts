/** The list of a user's factors, which operations that add and remove factors keep. */
import type { Factor } from '../../users/factors.ts'
import { factorsColumn, toFactors } from '../rows.ts'
import { firstRow, type Steps } from './operation.ts'

/**
 * Adds a factor to the list of a user whom the operation has locked, or removes it. Every change of a factor counts as a change of the
 * user, so the operation must invalidate the user.
 * @param at milliseconds since the epoch.
 */
export function* listFactor(userId: string, factor: Factor, isAdded: boolean, at: number): Steps<void> {
  const user = yield* firstRow<{ factors: string | null }>({
    text: 'SELECT factors FROM users WHERE id = $1',
    values: [userId],
  })
  const others = toFactors(user?.factors ?? null).filter(each => each !== factor)
  yield {
    text: 'UPDATE users SET factors = CAST($2 AS text), updated_at = $3, version = version + 1 WHERE id = $1',
    values: [userId, factorsColumn(isAdded ? [...others, factor] : others), at],
  }
}
