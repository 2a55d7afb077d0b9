import type { Factor } from './factors.ts'
import type { JsonObject } from './metadata.ts'

/** A user. Timestamps are milliseconds since the epoch. */
export interface User {
  /** UUIDv7: ids sort by the timestamp of sign-up. */
  readonly id: string
  /** In canonical form, see {@link canonicalEmail}; unique. */
  readonly email: string
  readonly firstName: string | null
  readonly lastName: string | null
  readonly emailVerified: boolean
  readonly hasPassword: boolean
  readonly disabled: boolean
  /** Sorted, each once. */
  readonly roles: readonly string[]
  /** Written by the user. */
  readonly userMetadata: JsonObject
  /** Written by administrators; the user sees it. */
  readonly appMetadata: JsonObject
  /** Sorted, each once. */
  readonly factors: readonly Factor[]
  readonly createdAt: number
  readonly updatedAt: number
  /** `null` until the first authenticated request. */
  readonly lastRequestAt: number | null
  /** Begins at 1 and counts every change except that of `lastRequestAt`. */
  readonly version: number
}

/** A user with everything that another service needs. The hash is `null` for a user who has no password. */
export type UserWithHash = User & { readonly passwordHash: string | null }

/** Stored as version 1, without a last request and without factors. */
export type NewUser = Omit<UserWithHash, 'hasPassword' | 'lastRequestAt' | 'version' | 'factors'>

/** The names of the sign-in methods and factors that a user has. Methods by mail need nothing of their own. */
export const methodsOf = ({
  hasPassword,
  factors,
}: Pick<User, 'hasPassword' | 'factors'>): readonly string[] =>
  hasPassword ? ['password', ...factors] : factors

/** Changes that users make themselves; `null` clears. */
export interface OwnChanges {
  readonly firstName?: string | null
  readonly lastName?: string | null
  /** Replaces the whole object. */
  readonly userMetadata?: JsonObject
}

/** Changes by administrators. */
export interface UserChanges extends OwnChanges {
  readonly email?: string
  readonly emailVerified?: boolean
  readonly disabled?: boolean
  readonly roles?: readonly string[]
  /** Replaces the whole object. */
  readonly appMetadata?: JsonObject
}

/** RFC 5321 §4.5.3.1.3 gives a path 256 octets with its two brackets. */
export const EMAIL_MAX_LENGTH = 254

/** The form in which e-mails are stored and compared. */
export const canonicalEmail = (email: string): string => email.trim().toLowerCase()

/**
 * Case-folded text by which names and e-mails are sorted and searched, alike on every engine. It is stored in columns of its
 * own, because SQLite folds only ASCII and PostgreSQL folds by its locale.
 */
export const searchKey = (text: string | null): string =>
  // Upper case first, so that ß equals SS. The lower case of Σ is ς at the end of a word, σ elsewhere.
  (text ?? '').toUpperCase().toLowerCase().replaceAll('ς', 'σ').normalize('NFC')
