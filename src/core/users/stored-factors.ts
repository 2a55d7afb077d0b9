/** The list of a user's factors. */

import { firstRow, type Steps } from '#storage/operations/operation'
import { endsAccess, refusedFor, type Write } from '#storage/operations/write'
import type { AuditEvent } from '../audit-log/event.ts'
import { recordStatement } from '../audit-log/stored-events.ts'
import { endImpersonationsBy } from '../auth/stored-keys.ts'
import { type ActingSession, endProofs, lockForSession, sessionIdOf } from '../auth/stored-sessions.ts'
import type { Factor } from './factors.ts'
import { refusalOf, type SessionRefusal, type UserRefusal } from './refusals.ts'
import { lockUser } from './user-locks.ts'
import { factorsColumn, toFactors } from './user-rows.ts'

/** A change of the ways to sign in that the user makes in a session. */
export interface OwnFactorChange {
  readonly session: ActingSession
  readonly endsOthers: boolean
}

function* lockOwner(userId: string, own: OwnFactorChange | null): Steps<SessionRefusal | null> {
  if (own !== null) return yield* lockForSession(userId, own.session)
  return refusalOf(yield* lockUser(userId), { onlyEnabled: false })
}

/**
 * Runs a change of the ways in which the event's user signs in, and locks the user. Proofs of identity of other sessions end, and pending
 * changes. @param own `null` if an administrator makes it; else its session must still exist.
 * @param change returns why it is refused, and what it has written is rolled back; else `null`.
 */
export function* changeFactors<Refusal extends string>(
  own: OwnFactorChange | null,
  event: AuditEvent,
  change: () => Steps<Refusal | null>,
): Steps<Write<'done' | Refusal | 'sessionNotFound' | UserRefusal>> {
  const { userId } = event
  const refused = (yield* lockOwner(userId, own)) ?? (yield* change())
  if (refused !== null) return refusedFor(userId, refused)
  yield* endProofs(userId, own && sessionIdOf(own.session), own?.endsOthers)
  const impersonated = own?.endsOthers ? yield* endImpersonationsBy(userId) : []
  yield recordStatement(event)
  return endsAccess([userId, ...impersonated], 'done')
}

/** The column with the factors; `undefined` if there is no such user. */
export function* factorsOf(userId: string): Steps<string | null | undefined> {
  const user = yield* firstRow<{ factors: string | null }>({
    text: 'SELECT factors FROM users WHERE id = $1',
    values: [userId],
  })
  return user?.factors
}

/**
 * Adds a factor to the list of a locked user, or removes it. It counts as a change of the user, whom the operation must invalidate.
 * @param at milliseconds since the epoch.
 */
export function* setFactor(userId: string, factor: Factor, isSet: boolean, at: number): Steps<void> {
  const others = toFactors((yield* factorsOf(userId)) ?? null).filter(each => each !== factor)
  yield {
    text: 'UPDATE users SET factors = CAST($2 AS text), updated_at = $3, version = version + 1 WHERE id = $1',
    values: [userId, factorsColumn(isSet ? [...others, factor] : others), at],
  }
}
