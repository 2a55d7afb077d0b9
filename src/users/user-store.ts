import type { AuditEvent } from '../audit-log/event.ts'
import type { UserFilter, UserQuery } from './listing.ts'
import type { User, UserChanges } from './user.ts'

/** An embedded engine answers reads at once, one across a network later; callers that can use the difference do. */
export type MaybePromise<T> = T | Promise<T>

export interface UpdateOptions {
  /** End all of the user's sessions in the same transaction. */
  readonly endSessions: boolean
  /** Change an enabled user alone: what users do themselves ends with their being disabled. */
  readonly onlyEnabled: boolean
  /** Change a user of one of these versions alone; `null` for whatever version. */
  readonly versions: readonly number[] | null
}

/** Why nothing was done to a user: there is none, or no longer; it is disabled; its password is not the verified one any more. */
export type UserRefusal = 'userNotFound' | 'accountDisabled' | 'passwordChanged'

/** Why a user was not changed: disabled only where enabled users alone are changed. */
export type UpdateRefusal = 'userNotFound' | 'accountDisabled' | 'versionChanged' | 'emailTaken'

/**
 * What the use cases need of a store. Every write is on disk before its promise resolves; the event that it is given is
 * kept in the same transaction, if there was a change.
 */
export interface UserStore {
  find(id: string): MaybePromise<User | undefined>
  findByEmail(email: string): MaybePromise<{ user: User; passwordHash: string } | undefined>
  /**
   * A new e-mail, and a disabling, make e-mail tokens of the user invalid.
   * @returns the user as changed, or why it was not.
   */
  update(
    id: string,
    changes: UserChanges,
    event: AuditEvent,
    options: UpdateOptions,
  ): Promise<User | UpdateRefusal>
  /**
   * Removes a user with all that belongs to them, and the addresses in their events. The event becomes the newest of the
   * user's: its timestamp is later than given where another one has a later one.
   * @param verifiedHash where given, only while it is the hash of the user's password, and the user is enabled.
   */
  remove(event: AuditEvent, verifiedHash: string | null): Promise<'removed' | UserRefusal>
  list(query: UserQuery): MaybePromise<readonly User[]>
  /** Costs time in proportion to the number of users: asked for by `count=true` alone. */
  count(filter: UserFilter): MaybePromise<number>
}
