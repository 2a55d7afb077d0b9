/** Common to all ways to sign in, once the user is verified. */
import { actingUser, type EventDetails, newEvent } from '../audit-log/event.ts'
import { newSession, type SessionClient, type SessionLimits } from '../auth/session.ts'
import { ServiceError } from '../errors.ts'
import type { User } from '../users/user.ts'

export interface SignInRules {
  /** Whether signing in requires a verified e-mail. */
  readonly requireEmailVerification: boolean
}

/**
 * Must be called after the user was verified: the errors reveal that there is an account.
 * @throws {ServiceError} `accountDisabled`, `emailNotVerified`
 */
export const assertMaySignIn = (
  { disabled, emailVerified }: User,
  { requireEmailVerification }: SignInRules,
): void => {
  if (disabled) throw new ServiceError('accountDisabled')
  if (requireEmailVerification && !emailVerified) throw new ServiceError('emailNotVerified')
}

/** @param now milliseconds since the epoch. @returns the session to open, and its event. */
export const newSignIn = (
  userId: string,
  now: number,
  limits: SessionLimits,
  client: SessionClient,
  details: Omit<EventDetails<'user.signed-in'>, 'session'> = {},
) => {
  const session = newSession(userId, now, limits, client)
  const actor = actingUser(userId, client.ip)
  const event = newEvent('user.signed-in', actor, userId, now, { session: session.id, ...details })
  return { session, event }
}
