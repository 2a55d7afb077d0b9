/** The store of users. */
import type { AuditEvent } from '../audit-log/event.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import type { UserFilter, UserQuery } from './listing.ts'
import type { User, UserChanges } from './user.ts'

export interface UpdateOptions {
  /** Revoke all of the user's sessions in the same transaction. */
  readonly revokeSessions: boolean
  /** Invalidate all of the user's e-mail tokens, and the mailed code to sign in, in the same transaction. */
  readonly invalidateTokens: boolean
  /**
   * For a change that users make themselves: the id of the session or API key. It must exist, and the user must be enabled. `null` for
   * changes by others.
   */
  readonly credentialId: string | null
  /** Change only a user with one of these versions; `null`: any. */
  readonly versions: readonly number[] | null
}

/** Why an operation on a user did nothing. `passwordChanged`: the hash is not the verified one any more. */
export type UserRefusal = 'userNotFound' | 'accountDisabled' | 'passwordChanged'

/** Why a change that a user makes in a session did nothing. `sessionNotFound`: the session has ended. */
export type SessionRefusal = UserRefusal | 'sessionNotFound'

/** Why a user was not changed. `accountDisabled` and `sessionNotFound` (or no such API key) only with `credentialId`. */
export type UpdateRefusal =
  | 'userNotFound'
  | 'accountDisabled'
  | 'sessionNotFound'
  | 'versionChanged'
  | 'emailTaken'

/** The session in which a user makes a change: both must still be true in the transaction of the change. */
export interface ActingSession {
  readonly id: string
  /** The verified hash of the user's password; `null` if the change needs no password. */
  readonly passwordHash: string | null
}

/** A session in which the password was verified for the change. */
export interface VerifiedSession extends ActingSession {
  readonly passwordHash: string
}

/** A write is on disk before its promise resolves. If it changes something, its event is stored in the same transaction. */
export interface UserStore {
  find(id: string): MaybePromise<User | undefined>
  findByEmail(email: string): MaybePromise<{ user: User; passwordHash: string } | undefined>
  findId(email: string): MaybePromise<string | undefined>
  /** @returns the changed user, or the reason for no change. A user who has these values already keeps the version, without an event. */
  update(
    id: string,
    changes: UserChanges,
    event: AuditEvent,
    options: UpdateOptions,
  ): Promise<User | UpdateRefusal>
  /**
   * Deletes a user with everything that belongs to them, and the addresses in their events. The event becomes the user's
   * newest: its timestamp moves behind that of a later event.
   * @param acting the session in which the user, who must be enabled, deletes the account; `null` if an administrator does.
   */
  remove(event: AuditEvent, acting: VerifiedSession | null): Promise<'removed' | SessionRefusal>
  /**
   * Removes every factor of the event's user, also unconfirmed ones, and no proof of identity of the user's sessions counts any more.
   * @returns `none` if the user had no factor.
   */
  removeFactors(event: AuditEvent): Promise<'removed' | 'none' | 'userNotFound'>
  list(query: UserQuery): MaybePromise<readonly User[]>
  /** Takes time in proportion to the number of users: only for `count=true`. */
  count(filter: UserFilter): MaybePromise<number>
}
