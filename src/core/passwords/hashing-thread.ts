/** The functions that hashing threads run: synchronous, one hash at a time. */
import { hashSync, verifySync } from '@node-rs/argon2'
import bcrypt from 'bcryptjs'
import { withoutPadding } from './formats/argon2.ts'
import { canonicalBcrypt, djangoBcrypt, wordpress } from './formats/bcrypt.ts'
import { pbkdf2 } from './formats/pbkdf2.ts'
import { phpass } from './formats/phpass.ts'
import { firebase, scrypt } from './formats/scrypt.ts'
import { shaCrypt } from './formats/sha-crypt.ts'
import { type HashKind, hashKind, isComparable } from './formats.ts'
import { HASH_PARAMETERS } from './our-hash.ts'
import { Padding } from './padding.ts'

export const hash = (password: string): string => hashSync(password, HASH_PARAMETERS)

// Uses only the first 72 bytes of a password, as every bcrypt does.
const verifyBcrypt = (password: string, encoded: string): boolean =>
  bcrypt.compareSync(password, canonicalBcrypt(encoded))

const verifyPrehashed =
  ({ passwordOf, bcryptOf }: typeof wordpress) =>
  (password: string, encoded: string): boolean =>
    verifyBcrypt(passwordOf(password), bcryptOf(encoded))

const VERIFIERS: Readonly<Record<HashKind, (password: string, encoded: string) => boolean>> = {
  argon2: (password, encoded) => verifySync(withoutPadding(encoded), password),
  bcrypt: verifyBcrypt,
  djangoBcrypt: verifyPrehashed(djangoBcrypt),
  firebase: firebase.verify,
  pbkdf2: pbkdf2.verify,
  phpass: phpass.verify,
  scrypt: scrypt.verify,
  shaCrypt: shaCrypt.verify,
  wordpress: verifyPrehashed(wordpress),
}

/** A hash, and the normalization forms of a password to compare it with, in this order. */
export interface Comparison {
  readonly passwords: readonly string[]
  readonly encoded: string
}

const padding = new Padding({
  now: () => performance.now(),
  hash: parameters => hashSync('', parameters),
})

/**
 * Compares without padding.
 * @returns `null` for a stored hash that is not accepted any more, or that its library rejects: it must not fail a sign-in.
 */
export const compare = (password: string, encoded: string): boolean | null => {
  const kind = hashKind(encoded)
  if (kind === null || !isComparable(encoded)) return null
  try {
    return VERIFIERS[kind](password, encoded)
  } catch {
    return null
  }
}

/** Takes as long for each password as with one of our hashes, or longer. */
export const verify = ({ passwords, encoded }: Comparison): boolean =>
  passwords.some(password => padding.run(encoded, () => compare(password, encoded)))
