/**
 * Named administrators: users who sign in to the console with their account. What they may do follows at each request from the session of the
 * account, in memory: its user, their role, and its two factors. So a write that ends one of these ends the console with it.
 */
import type { ProtectedRole } from '#core/accounts/protected-role'
import { isMultiFactor } from '#core/accounts/sign-in-methods'
import type { PresentedAdminKey } from '#core/auth/admin-key'
import { isApiKeyPrincipal, type Principal } from '#core/auth/principal'
import type { DeclaredError } from '#feature/declaration'
import { ERRORS } from './definitions.ts'

/** What a session of the console is opened with has this before the id of a session. No admin key begins with it: a header cannot. */
const OF_SESSION = '\u0000'

/** For a row of the console's sessions, in place of an admin key. */
export const openedBySession = (sessionId: string): string => OF_SESSION + sessionId

/** @returns the id of the session of a user that has opened a session of the console; `null`: it was an admin key. */
export const sessionIdIn = (opener: string): string | null =>
  opener.startsWith(OF_SESSION) ? opener.slice(OF_SESSION.length) : null

/** @returns why the session of a user may not administer; `null` if it may. */
export const refusalOf = ({ role }: ProtectedRole, principal: Principal): DeclaredError | null => {
  const { user } = principal.cachedUser
  if (isApiKeyPrincipal(principal) || principal.impersonatedBy !== null || !user.roles.includes(role))
    return ERRORS.administratorRequired
  return isMultiFactor(principal.amr) && user.factors.length > 0 ? null : ERRORS.administratorFactorRequired
}

/** The key of an administrator, which has exactly the scopes of the role. */
export const keyOf = (
  { scopes }: ProtectedRole,
  { credentialId: sessionId, cachedUser: { user } }: Principal,
): PresentedAdminKey => ({
  id: user.id,
  name: user.email,
  scopes,
  expiresAt: null,
  administrator: { sessionId, version: user.version },
})
