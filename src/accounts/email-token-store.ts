/** The store of e-mail tokens. */
import type { AuditEvent } from '../audit-log/event.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import type { Factor } from '../users/factors.ts'
import type { User } from '../users/user.ts'
import type { ActingSession, SessionRefusal } from '../users/user-store.ts'
import type { EmailToken, MAX_MAILS } from './email-token.ts'

/** That a client may confirm the e-mail of an account: a session of the account, or its password and code as they were verified. */
export type AccountProof =
  | { readonly sessionId: string }
  | { readonly passwordHash: string; readonly factors: readonly Factor[] }

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
   * @returns the changed user; `notFound` for an invalid token, `notProved` if the proof does not hold any more, `emailTaken` when another
   * user has the e-mail.
   */
  confirmEmail(
    token: EmailToken,
    event: AuditEvent,
    proof: AccountProof,
  ): Promise<User | 'notFound' | 'notProved' | 'emailTaken'>
  /**
   * Uses a token for `verifyEmail` of somebody who does not know the account: ends the user's pending changes to its
   * address, or removes the user, who has signed up with it and never confirmed it.
   * @param event of the removal, or of the end of the changes.
   * @returns false for an invalid token.
   */
  rejectEmail(token: EmailToken, event: AuditEvent): Promise<boolean>
}
