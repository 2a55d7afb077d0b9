/** The store of e-mail tokens. */
import type { AuditEvent } from '../audit-log/event.ts'
import type { Session } from '../auth/session.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import type { Factor } from '../users/factors.ts'
import type { User } from '../users/user.ts'
import type { ActingSession, SessionRefusal } from '../users/user-store.ts'
import type { EmailToken, MAX_MAILS } from './email-token.ts'

/** A write and its event are on disk before its promise resolves. */
export interface EmailTokenStore {
  /**
   * Stores a token, if the user is enabled and the limit {@link MAX_MAILS} of its purpose is not reached.
   * @param acting the session that asks for it; `null` if there is none.
   */
  add(
    token: EmailToken,
    event: AuditEvent,
    acting: ActingSession | null,
  ): Promise<'added' | 'tooManyMails' | SessionRefusal>
  /** @returns `undefined` also for a token that is used or expired at `now`. */
  find(digest: string, now: number): MaybePromise<EmailToken | undefined>
  /**
   * Uses a token for `verifyEmail`: sets the user's e-mail to its address, as verified. A changed e-mail invalidates all
   * other tokens of the user.
   * @returns the changed user, `undefined` for an invalid token, `'emailTaken'` when another user has the e-mail.
   */
  confirmEmail(token: EmailToken, event: AuditEvent): Promise<User | 'emailTaken' | undefined>
  /**
   * Uses a token for `resetPassword`: replaces the password hash, invalidates all other tokens of the user, ends all
   * sessions and opens this one. The e-mail becomes verified. If it was not, what grants access without the password is removed,
   * see `FeatureTable.grantsAccess`.
   * @param factors those for which the code was verified: the user must still have them.
   * @returns the changed user, `undefined` for an invalid token.
   */
  resetPassword(
    token: EmailToken,
    factors: readonly Factor[],
    session: Session,
    newHash: string,
    event: AuditEvent,
  ): Promise<User | undefined>
}
