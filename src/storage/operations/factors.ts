/** The list of a user's factors, which operations that add and remove factors keep; and the removal of all of them. */
import type { AuditEvent } from '../../audit-log/event.ts'
import type { Factor } from '../../users/factors.ts'
import type { UserRefusal } from '../../users/user-store.ts'
import { factorsColumn, toFactors } from '../rows.ts'
import type { OwnedTable } from '../stored-feature.ts'
import { recordStatement } from './events.ts'
import { firstRow, type Steps } from './operation.ts'
import { deleteOwnedStatement } from './owned-rows.ts'
import { refusalOf } from './refusals.ts'
import { sessionExists } from './sessions.ts'
import { lockUser } from './user-locks.ts'
import { invalidates, refusedFor, type Write } from './write.ts'

/** A change that the user of a session makes. */
export interface OwnFactorChange {
  readonly sessionId: string
  /** Whether the user's other sessions end. */
  readonly endsOthers: boolean
}

/**
 * Locks the user. The session must still exist: a new password, for example, has ended it.
 * @returns why the change is refused; `null` if it is not.
 */
export function* refusalOfChange(
  userId: string,
  { sessionId }: Pick<OwnFactorChange, 'sessionId'>,
): Steps<'sessionNotFound' | UserRefusal | null> {
  const refused = refusalOf(yield* lockUser(userId), { onlyEnabled: true })
  if (refused !== null) return refused
  return (yield* sessionExists(sessionId, userId)) ? null : 'sessionNotFound'
}

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

/** @param tables of features, whose rows are factors of their users. */
export const removeFactorsWith = (tables: readonly OwnedTable[]) =>
  function* removeFactors(event: AuditEvent): Steps<Write<'removed' | 'none' | 'userNotFound'>> {
    const { userId, at } = event
    if ((yield* lockUser(userId)) === undefined) return refusedFor(userId, 'userNotFound')
    for (const table of tables) yield deleteOwnedStatement(table, userId)
    const changed = yield* firstRow({
      text: `UPDATE users SET factors = NULL, updated_at = $2, version = version + 1
        WHERE id = $1 AND factors IS NOT NULL RETURNING id`,
      values: [userId, at],
    })
    if (changed === undefined) return refusedFor(userId, 'none')
    yield recordStatement(event)
    return invalidates(userId, 'removed')
  }
