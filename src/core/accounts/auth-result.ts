/** The result of signing in. */
import type { AccessTokens } from '../auth/access-tokens.ts'
import type { Session } from '../auth/session.ts'
import type { User } from '../users/user.ts'

export interface AuthResult {
  readonly accessToken: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  readonly user: User
}

export const authResult = (tokens: AccessTokens, user: User, session: Session): AuthResult => ({
  accessToken: tokens.issue(session),
  expiresAt: session.expiresAt,
  user,
})
