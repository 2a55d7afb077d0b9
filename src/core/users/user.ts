import { asciiLowerCase, asciiTrim } from '#base/ascii'
import type { Factor } from './factors.ts'
import type { FieldValues, OwnField } from './fields.ts'

/** A user, with the fields of `USER_FIELDS`. Timestamps are milliseconds since the epoch. */
export interface User extends FieldValues {
  /** UUIDv7: ids sort by the timestamp of sign-up. */
  readonly id: string
  /** In canonical form, see {@link canonicalEmail}; unique. */
  readonly email: string
  readonly emailVerified: boolean
  readonly hasPassword: boolean
  readonly disabled: boolean
  /** Sorted, each once. */
  readonly factors: readonly Factor[]
  readonly createdAt: number
  readonly updatedAt: number
  /** `null` until the first authenticated request. */
  readonly lastRequestAt: number | null
  /**
   * The sign-in methods of features that the user has, such as `identity`; those that are factors are in `factors`. Only read for
   * administrators: see `UserQuery.signInTables`.
   */
  readonly featureMethods?: readonly string[]
  /** Begins at 1 and counts every change except that of `lastRequestAt`. */
  readonly version: number
}

/** A user with everything that another service needs. The hash is `null` for a user who has no password. */
export type UserWithHash = User & { readonly passwordHash: string | null }

/** Stored as version 1, without a last request and without factors. */
export type NewUser = Omit<UserWithHash, 'hasPassword' | 'lastRequestAt' | 'version' | 'factors'>

/** The names of the sign-in methods and factors that a user has, each once. Methods by mail need nothing of their own. */
export const methodsOf = ({
  hasPassword,
  factors,
  featureMethods = [],
}: Pick<User, 'hasPassword' | 'factors' | 'featureMethods'>): readonly string[] => [
  ...(hasPassword ? ['password'] : []),
  ...factors,
  ...featureMethods,
]

/** Changes that users make themselves. A text of `null` is cleared; metadata is replaced as a whole. */
export type OwnChanges = Partial<Pick<FieldValues, OwnField>>

export interface UserChanges extends Partial<FieldValues> {
  readonly email?: string
  readonly emailVerified?: boolean
  readonly disabled?: boolean
}

/** RFC 5321 §4.5.3.1.3 gives a path 256 octets with its two brackets. */
export const EMAIL_MAX_LENGTH = 254

/** The form in which e-mails are stored and compared. Text that is not ASCII stays as it is, so that `emailViolations` refuses it. */
export const canonicalEmail = (email: string): string => asciiLowerCase(asciiTrim(email))

/**
 * Case-folded text by which names and e-mails are sorted and searched, alike on every engine. It is stored in columns of its
 * own, because SQLite folds only ASCII and PostgreSQL folds by its locale.
 */
export const searchKey = (text: string | null): string =>
  // Upper case first, so that ß equals SS. The lower case of Σ is ς at the end of a word, σ elsewhere.
  (text ?? '').toUpperCase().toLowerCase().replaceAll('ς', 'σ').normalize('NFC')
