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
  /** Change only an enabled user, for changes that users make themselves. */
  readonly onlyEnabled: boolean
  /** Change only a user with one of these versions; `null`: any. */
  readonly versions: readonly number[] | null
}

/** Why an operation on a user did nothing. `passwordChanged`: the hash is not the verified one any more. */
export type UserRefusal = 'userNotFound' | 'accountDisabled' | 'passwordChanged'

/** Why a user was not changed. `accountDisabled` only with `onlyEnabled`. */
export type UpdateRefusal = 'userNotFound' | 'accountDisabled' | 'versionChanged' | 'emailTaken'

/** A write is on disk before its promise resolves. If it changes something, its event is stored in the same transaction. */
export interface UserStore {
  find(id: string): MaybePromise<User | undefined>
  findByEmail(email: string): MaybePromise<{ user: User; passwordHash: string } | undefined>
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
   * @param verifiedHash if not `null`, it must still be the hash of the user's password, and the user must be enabled.
   */
  remove(event: AuditEvent, verifiedHash: string | null): Promise<'removed' | UserRefusal>
  /**
   * Removes every factor of the event's user, also unconfirmed ones, and no proof of identity of the user's sessions counts any more.
   * @returns `none` if the user had no factor.
   */
  removeFactors(event: AuditEvent): Promise<'removed' | 'none' | 'userNotFound'>
  list(query: UserQuery): MaybePromise<readonly User[]>
  /** Takes time in proportion to the number of users: only for `count=true`. */
  count(filter: UserFilter): MaybePromise<number>
}
