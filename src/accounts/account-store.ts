/** The store of sign-ups and password changes. */
import type { AuditEvent } from '../audit-log/event.ts'
import type { Session } from '../auth/session.ts'
import type { Factor } from '../users/factors.ts'
import type { User, UserWithHash } from '../users/user.ts'
import type { SessionRefusal, UserRefusal, VerifiedSession } from '../users/user-store.ts'
import type { EmailToken } from './email-token.ts'
import type { RemovedAccess } from './mails.ts'

/** Stored as version 1, without a last request and without factors. */
export type NewUser = Omit<UserWithHash, 'lastRequestAt' | 'version' | 'factors'>

/** Stored with a new account, in the same transaction. */
export interface AccountExtras {
  readonly session?: Session
  readonly emailToken?: EmailToken
}

/** A sign-in by the mailbox alone. The store compares the state of the user, as it was read, in its transaction. */
export interface MailboxSignIn {
  /** What was mailed: `useResetToken`, or a `MailboxProof` of a feature with the name of the feature before its own, and its arguments. */
  readonly proof: { readonly name: string; readonly args: readonly unknown[] }
  /** The recipient. */
  readonly email: string
  readonly emailVerified: boolean
  /** Those for which a code was verified. Not compared if the e-mail is not verified: they are removed then. */
  readonly factors: readonly Factor[]
  /** Of a new password, which ends all sessions and pending mails; `null` keeps the password. */
  readonly newHash: string | null
}

export interface SignedInByMailbox {
  readonly user: User
  /** Apart from the password; `null` if the e-mail was confirmed before, so that nothing was removed. */
  readonly removed: readonly RemovedAccess[] | null
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
  /**
   * Uses up what was mailed and opens a session. The e-mail becomes verified. If it was not, the account is emptied: the password,
   * sessions, pending mails, and the rows of tables that give access are removed, each with an event.
   * @returns `notProved` if what was mailed is not valid any more; `userChanged` if the user is not what was read.
   */
  signInByMailbox(
    signIn: MailboxSignIn,
    session: Session,
    event: AuditEvent,
  ): Promise<SignedInByMailbox | 'notProved' | 'userChanged' | UserRefusal>
}
