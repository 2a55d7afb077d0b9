/** What imports and exports know of factors. Each kind of factor implements {@link BulkFactor}. */
import type { Factor } from '../users/factors.ts'
import type { User } from '../users/user.ts'
import type { OwnedRow } from './bulk-user-store.ts'

/**
 * The credentials of a user besides the password, as a line of an import or export has them. They do not depend on the keys of a
 * service. Each kind of factor has its own properties.
 */
export interface FactorCredentials {
  /** The secret of the authenticator app: base32 (RFC 4648). */
  readonly totpSecret?: string
  /** Digests of the recovery codes: SHA-256, base64url. */
  readonly recoveryCodes?: readonly string[]
}

/** The messages by field, as in the error body. */
export type FieldErrors = Readonly<Record<string, readonly string[]>>

export interface BulkFactor {
  readonly factor: Factor
  /**
   * @param now milliseconds since the epoch.
   * @returns the rows to store with the user: none if the credentials do not have this factor. With errors, the user is not imported.
   */
  toRows(
    userId: string,
    credentials: FactorCredentials,
    now: number,
  ): { readonly rows: readonly OwnedRow[]; readonly errors: FieldErrors }
  /**
   * @param users who had this factor when they were read.
   * @returns by the id of the user. Users who have lost the factor since are missing.
   * @throws {ServiceError} `secretsUnavailable`, `storeUnavailable`, `overloaded`
   */
  credentialsOf(users: readonly User[]): Promise<ReadonlyMap<string, FactorCredentials>>
}
