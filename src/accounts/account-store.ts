import type { AuditEvent } from '../audit-log/event.ts'
import type { Session } from '../auth/session.ts'
import type { User } from '../users/user.ts'
import type { UserRefusal } from '../users/user-store.ts'
import type { EmailToken } from './email-token.ts'

export type NewUser = Omit<User, 'lastRequestAt' | 'version'> & { readonly passwordHash: string }

/** What comes with a new account, in the same transaction. */
export interface NewUserExtras {
  readonly session?: Session
  readonly emailToken?: EmailToken
}

/**
 * What opening accounts and changing passwords need of a store. Every write is on disk before its promise resolves; the event
 * that it is given is kept in the same transaction, if there was a change.
 */
export interface AccountStore {
  /** @returns false when the e-mail is taken. */
  addUser(user: NewUser, event: AuditEvent, first: NewUserExtras): Promise<boolean>
  /** Replaces a password's hash by a stronger one of the same password, if it is still `from`. */
  rehash(userId: string, from: string, to: string): Promise<void>
  /**
   * Replaces a password's hash by another password's, ends every session of the user and opens this one, if at that very
   * timestamp the user is enabled and the password is still the one that was verified. What was mailed to reset the password,
   * or to change the e-mail, is of no use any more.
   * @returns the user as changed, or why it was not.
   */
  changePassword(
    session: Session,
    verifiedHash: string,
    newHash: string,
    event: AuditEvent,
  ): Promise<User | UserRefusal>
}
