/** The functions that hashing threads run: synchronous, one hash at a time. */
import { hashSync, verifySync } from '@node-rs/argon2'
import bcrypt from 'bcryptjs'
import {
  canonicalBcrypt,
  HASH_PARAMETERS,
  type HashKind,
  hashKind,
  isComparable,
  parseScrypt,
  verifyScrypt,
} from './formats.ts'
import { Padding } from './padding.ts'

export const hash = (password: string): string => hashSync(password, HASH_PARAMETERS)

const VERIFIERS: Readonly<Record<HashKind, (password: string, encoded: string) => boolean>> = {
  argon2: (password, encoded) => verifySync(encoded, password),
  // Uses only the first 72 bytes of a password, as every bcrypt does.
  bcrypt: (password, encoded) => bcrypt.compareSync(password, canonicalBcrypt(encoded)),
  scrypt(password, encoded) {
    const parsed = parseScrypt(encoded)
    return parsed !== null && verifyScrypt(password, parsed)
  },
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
