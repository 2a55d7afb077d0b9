/** The store of sign-ups and password changes. */
import type { AuditEvent } from '../audit-log/event.ts'
import type { Session } from '../auth/session.ts'
import type { User, UserWithHash } from '../users/user.ts'
import type { SessionRefusal, VerifiedSession } from '../users/user-store.ts'
import type { EmailToken } from './email-token.ts'

/** Stored as version 1, without a last request and without factors. */
export type NewUser = Omit<UserWithHash, 'lastRequestAt' | 'version' | 'factors'>

/** Stored with a new account, in the same transaction. */
export interface AccountExtras {
  readonly session?: Session
  readonly emailToken?: EmailToken
}

/** A write is on disk before its promise resolves. If it changes something, its event is stored in the same transaction. */
export interface AccountStore {
  /** @returns false when the e-mail is taken. */
  addUser(user: NewUser, event: AuditEvent, extras: AccountExtras): Promise<boolean>
  /** Replaces a password hash by a stronger one of the same password, if it is still `from`. */
  rehash(userId: string, from: string, to: string): Promise<void>
  /**
   * Changes the password: ends all sessions of the user, opens this one, and invalidates pending reset and e-mail-change
   * links. Nothing changes unless, in the same transaction, the user is enabled.
   * @returns the changed user, or the reason for no change.
   */
  changePassword(
    session: Session,
    acting: VerifiedSession,
    newHash: string,
    event: AuditEvent,
  ): Promise<User | SessionRefusal>
}
