/** What the hashing threads run: one hash at a time, blocking nobody but their own thread. */
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
  // Looks at the first 72 bytes of a password alone, as every bcrypt does.
  bcrypt: (password, encoded) => bcrypt.compareSync(password, encoded),
  scrypt(password, encoded) {
    const parsed = parseScrypt(encoded)
    return parsed !== null && verifyScrypt(password, parsed)
  },
}

/** What a password is compared with, and the forms of it that are tried, in this order. */
export interface Comparison {
  readonly passwords: readonly string[]
  readonly encoded: string
}

export const verify = ({ passwords, encoded }: Comparison): boolean => {
  const kind = hashKind(encoded)
  // One that is in the store and would not be taken today matches nothing: it must not fail a sign-in, or hold it up; nor must one
  // that its library refuses.
  if (kind === null || hashViolation(encoded) !== null) return false
  try {
    return passwords.some(password => VERIFIERS[kind](password, encoded))
  } catch {
    return false
  }
}
