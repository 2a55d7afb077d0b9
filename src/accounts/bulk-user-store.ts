/** The store of bulk imports and exports. */
import type { AuditEvent } from '../audit-log/event.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import type { Position } from '../users/listing.ts'
import type { UserWithHash } from '../users/user.ts'

export type Imported =
  | { readonly status: 'created' }
  /** The e-mail already has a user, with this id. Nothing changed. */
  | { readonly status: 'exists'; readonly id: string }
  /** The id belongs to a user with another e-mail. */
  | { readonly status: 'idTaken' }

export interface BulkUserStore {
  /**
   * Adds the users whose id and e-mail are free. Of two simultaneous imports or sign-ups with one e-mail, one succeeds.
   * @param events one for each user, in the same order; stored for those who are added.
   * @returns one result for each user, in the same order, when all are on disk.
   */
  importUsers(users: readonly UserWithHash[], events: readonly AuditEvent[]): Promise<readonly Imported[]>
  /** The next users in order of creation: few enough not to delay other requests. Empty at the end. */
  exportUsers(after: Position | null): MaybePromise<readonly UserWithHash[]>
}
