/** What imports and exports know of features: each kind of factor implements {@link BulkFactor}. */

import type { FieldErrors } from '#base/errors'
import type { MaybePromise } from '#base/maybe-promise'
import type { Actor } from '../audit-log/event.ts'
import type { OwnedRow } from '../store/store.ts'
import type { Factor } from '../users/factors.ts'
import type { User } from '../users/user.ts'

/**
 * A user's credentials besides the password, as a line of an import or export has them: each kind of factor has its own properties, which do
 * not depend on the keys of a service.
 */
export type FactorCredentials = Readonly<Record<string, unknown>>

export interface LineUser {
  readonly id: string
  /** Whether the id is that of the line; else it is a new one. */
  readonly keepsId: boolean
}

export interface FactorRow extends OwnedRow {
  /** The errors of the line if another row has a unique value of this one. */
  readonly ifTaken?: FieldErrors
}

export interface FactorRows {
  /** None if the credentials do not have this factor. */
  readonly rows: readonly FactorRow[]
  /** With errors, the user is not imported. */
  readonly errors: FieldErrors
}

/** A property of lines that a feature adds, such as memberships. It is stored after the user, also by a repeated import. */
export interface BulkProperty<Value = unknown> {
  readonly name: string
  /** The scope that imports need besides `users:import`. */
  readonly scope: string
  /** The scope without which exports lack the property. */
  readonly readScope: string
  /** @returns what is wrong; nothing is stored yet. */
  check(value: Value): Promise<FieldErrors>
  /** To a user whom the import, or an earlier one, has created. @returns what was not added, and why. */
  add(userId: string, value: Value, actor: Actor): Promise<FieldErrors>
  /** @returns by the id of the user. */
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
   * @returns by the id of the user, without those who have lost it since. @throws {ServiceError} `secretsUnavailable`
   */
  credentialsOf(users: readonly User[]): Promise<ReadonlyMap<string, Credentials>>
}
