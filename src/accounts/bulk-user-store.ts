import type { AuditEvent } from '../audit-log/event.ts'
import type { Position } from '../users/listing.ts'
import type { User } from '../users/user.ts'
import type { MaybePromise } from '../users/user-store.ts'

/** A user with all that another service needs to go on with. */
export type PortableUser = User & { readonly passwordHash: string }

export type Imported =
  | { readonly status: 'created' }
  /** There is a user of that e-mail already, with this id; nothing has changed. */
  | { readonly status: 'exists'; readonly id: string }
  /** The id belongs to a user of another e-mail. */
  | { readonly status: 'idTaken' }

/** What moving users in and out in great number needs of a store. */
export interface BulkUserStore {
  /**
   * Adds users, each who can be: of two who come at once with one e-mail, here or as a sign-up, one wins.
   * @param events one for each user, in their order: kept for those who are added.
   * @returns what came of each, in their order, once it is on disk.
   */
  importUsers(users: readonly PortableUser[], events: readonly AuditEvent[]): Promise<readonly Imported[]>
  /** Users in order of creation, `after` a position: so many that nobody else waits for long. Empty at the end. */
  exportUsers(after: Position | null): MaybePromise<readonly PortableUser[]>
}
