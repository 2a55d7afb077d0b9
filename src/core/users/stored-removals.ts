/** The removal of users, with the parts that features have in it. */

import type { Steps } from '#storage/operations/operation'
import type { AuditEvent } from '../audit-log/event.ts'
import { recordRemoval } from '../audit-log/stored-events.ts'
import { revokeAllSessions } from '../auth/stored-sessions.ts'
import type { AccountFeature } from '../store/account-feature.ts'
import { deleteOwned, type OwnedTables } from './owned-rows.ts'

export interface Removed {
  /** By the name of the feature: see `RemovalPart`. */
  readonly outcomes: Readonly<Record<string, unknown>>
}

export interface RemovalRefused {
  /** The name of its error. */
  readonly refusal: string
}

export interface UserRemovals {
  /** Must come before the lock on the user. */
  lock(userId: string): Steps<void>
  /**
   * Deletes the user of an event, who must be locked, with everything that belongs to them, and records the event.
   * @returns the ids to invalidate, and the outcomes of features.
   */
  remove(
    event: AuditEvent,
    by: 'user' | 'others',
  ): Steps<RemovalRefused | (Removed & { readonly evicts: readonly string[] })>
}

export const userRemovalsOf = (
  features: readonly AccountFeature[],
  { all }: Pick<OwnedTables, 'all'>,
): UserRemovals => {
  const parts = features.flatMap(({ name, userRemoval }) =>
    userRemoval === undefined ? [] : [{ name, ...userRemoval }],
  )
  return {
    *lock(userId) {
      for (const { lock } of parts) if (lock !== undefined) yield* lock(userId)
    },

    *remove(event, by) {
      const { userId } = event
      const evicts = [userId]
      const outcomes: Record<string, unknown> = {}
      for (const { name, remove } of parts) {
        const part = yield* remove(event, by)
        if (part.refusal !== undefined) return { refusal: part.refusal }
        evicts.push(...part.evicts)
        if (part.outcome !== undefined) outcomes[name] = part.outcome
      }
      yield* deleteOwned(all, userId)
      // Locks sessions in the order in which last requests are written. The cascade of the next statement has no defined order.
      yield* revokeAllSessions(userId)
      yield { text: 'DELETE FROM users WHERE id = $1', values: [userId] }
      yield* recordRemoval(event)
      // The IP addresses of administrators are not personal data of the user.
      yield {
        text: `UPDATE events SET ip = NULL WHERE user_id = $1 AND actor_type <> 'adminKey'`,
        values: [userId],
      }
      return { evicts, outcomes }
    },
  }
}
