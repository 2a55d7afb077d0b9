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
  /** Other rows have the values of unique columns. `rows` are the indexes of the rows that conflict, among those of the user. */
  | { readonly status: 'rowsTaken'; readonly rows: readonly number[] }

/** A row in a table of a feature, without the column that names the user who owns it. */
export interface OwnedRow {
  readonly table: string
  readonly values: Readonly<Record<string, string | number | null>>
}

/** A row that is added with its user. */
export interface ImportedRow extends OwnedRow {
  /** The index of the user who owns it. */
  readonly user: number
}

export interface BulkUserStore {
  /**
   * Adds the users whose id and e-mail are free. Of two simultaneous imports or sign-ups with one e-mail, one succeeds.
   * @param events one for each user, in the same order; stored for those who are added.
   * @param rows stored in the same transaction, for those who are added. A user whose rows have a value of a unique column
   * (`FeatureTable.unique`) that another row has is not added. The rows of one user must have different values.
   * @returns one result for each user, in the same order, when all are on disk.
   */
  importUsers(
    users: readonly UserWithHash[],
    events: readonly AuditEvent[],
    rows: readonly ImportedRow[],
  ): Promise<readonly Imported[]>
  /** The next users in order of creation: few enough not to delay other requests. Empty at the end. */
  exportUsers(after: Position | null): MaybePromise<readonly UserWithHash[]>
}
