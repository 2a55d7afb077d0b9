/** What imports and exports know of factors. Each kind of factor implements {@link BulkFactor}. */

import type { FieldErrors } from '#base/errors'
import type { MaybePromise } from '#base/maybe-promise'
import type { Actor } from '../audit-log/event.ts'
import type { OwnedRow } from '../store/store.ts'
import type { Factor } from '../users/factors.ts'
import type { User } from '../users/user.ts'

/**
 * The credentials of a user besides the password, as a line of an import or export has them. They do not depend on the keys of a
 * service. Each kind of factor has its own properties.
 */
export type FactorCredentials = Readonly<Record<string, unknown>>

/** The user of a line. */
export interface LineUser {
  readonly id: string
  /** Whether the line has the id; else it is a new one. */
  readonly keepsId: boolean
}

export interface FactorRow extends OwnedRow {
  /** For a table with a unique column: the errors of the line if another row has the value. */
  readonly ifTaken?: FieldErrors
}

export interface FactorRows {
  /** To store with the user: none if the credentials do not have this factor. */
  readonly rows: readonly FactorRow[]
  /** With errors, the user is not imported. */
  readonly errors: FieldErrors
}

/**
 * A property of users in imports and exports that a feature adds, such as their memberships. It is stored after the user, and so again by a
 * repeated import.
 */
export interface BulkProperty<Value = unknown> {
  /** The name of the property in a line. */
  readonly name: string
  /** What an admin key needs besides `users:import`: lines with the property change more than users. */
  readonly scope: string
  /** What an admin key needs besides `users:export`: exports of other keys lack the property. */
  readonly readScope: string
  /** @returns what is wrong with a line; empty if nothing is. Nothing is stored yet. */
  check(value: Value): Promise<FieldErrors>
  /**
   * Adds it to a user whom the import has created, or an earlier one with the same id.
   * @returns what was not added, and why.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  add(userId: string, value: Value, actor: Actor): Promise<FieldErrors>
  /** @returns by the id of the user; users without the property are missing. @throws {ServiceError} as `add` */
  valuesOf(users: readonly Pick<User, 'id'>[]): Promise<ReadonlyMap<string, Value>>
}

/** @template Credentials its properties of {@link FactorCredentials}. */
export interface BulkFactor<Credentials = FactorCredentials> {
  /** `null` for credentials that are no factor: users do not list them. */
  readonly factor: Factor | null
  /** @param now milliseconds since the epoch. */
  toRows(user: LineUser, credentials: Credentials, now: number): MaybePromise<FactorRows>
  /**
   * @param users who had this factor when they were read; for credentials that are no factor, all users.
   * @returns by the id of the user. Users who have lost the factor since are missing.
   * @throws {ServiceError} `secretsUnavailable`, `storeUnavailable`, `overloaded`
   */
  credentialsOf(users: readonly User[]): Promise<ReadonlyMap<string, Credentials>>
}
