/** A user as the service knows one. Timestamps are milliseconds since the epoch, UTC. */
export interface User {
  /** UUIDv7: ids sort by the timestamp of sign-up. */
  readonly id: string
  /** In canonical form, see {@link canonicalEmail}; unique. */
  readonly email: string
  readonly firstName: string | null
  readonly lastName: string | null
  readonly emailVerified: boolean
  readonly disabled: boolean
  readonly createdAt: number
  readonly updatedAt: number
  /** `null` until the first identified request. */
  readonly lastRequestAt: number | null
  /** Counts the changes of all but the last request, from 1. */
  readonly version: number
}

/** What users can change of themselves; `null` clears. */
export interface OwnChanges {
  readonly firstName?: string | null
  readonly lastName?: string | null
}

/** What administrators can change of a user. */
export interface UserChanges extends OwnChanges {
  readonly email?: string
  readonly emailVerified?: boolean
  readonly disabled?: boolean
}

/** RFC 5321 §4.5.3.1.3 gives a path 256 octets with its two brackets. */
export const EMAIL_MAX_LENGTH = 254

/** The one form in which e-mail addresses are kept and compared. */
export const canonicalEmail = (email: string): string => email.trim().toLowerCase()

/**
 * What names and e-mails are sorted and searched by: in any letter case, the same on every engine. Kept in columns of its
 * own because SQLite folds ASCII alone and PostgreSQL folds by its locale.
 */
export const searchKey = (text: string | null): string =>
  // By way of upper case, so that ß meets SS; and Σ in lower case is ς at the end of a word, σ elsewhere.
  (text ?? '').toUpperCase().toLowerCase().replaceAll('ς', 'σ').normalize('NFC')
