/** The formats of password hashes that are accepted, ours and foreign ones. Each is a file of `formats/`. */
import { argon2 } from './formats/argon2.ts'
import { bcrypt, djangoBcrypt, wordpress } from './formats/bcrypt.ts'
import { type HashFormat, MALFORMED } from './formats/format.ts'
import { pbkdf2 } from './formats/pbkdf2.ts'
import { phpass } from './formats/phpass.ts'
import { firebase, scrypt } from './formats/scrypt.ts'
import { shaCrypt } from './formats/sha-crypt.ts'

const FORMATS = { argon2, bcrypt, djangoBcrypt, firebase, pbkdf2, phpass, scrypt, shaCrypt, wordpress }

export type HashKind = keyof typeof FORMATS

/** Maximum characters. Hashes with the longest salts, keys and digests in use have about 450. */
const MAX_LENGTH = 512

const UNKNOWN =
  'must be a hash of argon2, bcrypt, scrypt, PBKDF2, phpass or crypt ($5$, $6$), in a form that the documents name'

export const hashKind = (encoded: string): HashKind | null => {
  for (const [kind, { start }] of Object.entries(FORMATS)) if (start.test(encoded)) return kind as HashKind
  return null
}

const formatOf = (encoded: string): HashFormat | null => {
  const kind = hashKind(encoded)
  return kind === null ? null : FORMATS[kind]
}

/** A message of the error body; `null` if passwords can be compared with the hash. */
const comparisonViolation = (encoded: string): string | null => {
  const format = formatOf(encoded)
  if (format === null) return UNKNOWN
  return encoded.length > MAX_LENGTH ? MALFORMED : format.violation(encoded)
}

export const isComparable = (encoded: string): boolean => comparisonViolation(encoded) === null

/** A message of the error body; `null` if a new hash is accepted. Stored ones may be comparable without it. */
export const hashViolation = (encoded: string): string | null =>
  comparisonViolation(encoded) ?? formatOf(encoded)?.newViolation?.(encoded) ?? null

/** The estimated time to verify a hash, in units of one of our hashes; 0 if it is not accepted. */
export const relativeCost = (encoded: string): number =>
  isComparable(encoded) ? (formatOf(encoded)?.cost(encoded) ?? 0) : 0

/** Whether other passwords match the same hash, see {@link HashFormat}. */
export const isAmbiguous = (password: string, encoded: string): boolean => {
  const { isAmbiguous: isAmbiguousIn } = formatOf(encoded) ?? {}
  return isAmbiguousIn !== undefined && [password, password.normalize('NFC')].some(isAmbiguousIn)
}
