/** The functions that hashing threads run: synchronous, one hash at a time. */
import { hashSync, verifySync } from '@node-rs/argon2'
import bcrypt from 'bcryptjs'
import {
  HASH_PARAMETERS,
  type HashKind,
  hashKind,
  hashViolation,
  parseScrypt,
  verifyScrypt,
} from './formats.ts'

export const hash = (password: string): string => hashSync(password, HASH_PARAMETERS)

const VERIFIERS: Readonly<Record<HashKind, (password: string, encoded: string) => boolean>> = {
  argon2: (password, encoded) => verifySync(encoded, password),
  // Uses only the first 72 bytes of a password, as every bcrypt does.
  bcrypt: (password, encoded) => bcrypt.compareSync(password, encoded),
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

export const verify = ({ passwords, encoded }: Comparison): boolean => {
  const kind = hashKind(encoded)
  // A stored hash that is no longer accepted, or that its library rejects, matches nothing: it must not fail or delay a sign-in.
  if (kind === null || hashViolation(encoded) !== null) return false
  try {
    return passwords.some(password => VERIFIERS[kind](password, encoded))
  } catch {
    return false
  }
}
