/** What a format of password hashes declares. */
import { timingSafeEqual } from 'node:crypto'
import { HASH_PARAMETERS } from '../our-hash.ts'

export const MALFORMED = 'is malformed'
export const TOO_COSTLY = 'costs too much to verify'

export interface HashFormat {
  /** What hashes of the format begin with. */
  readonly start: RegExp
  /** Shape and cost of a hash. @returns a message of the error body; `null` if passwords can be compared with it. */
  readonly violation: (encoded: string) => string | null
  /** What a new hash must not have either. Stored ones are compared all the same. @returns as `violation`. */
  readonly newViolation?: (encoded: string) => string | null
  /** The estimated time of a comparison with a hash that has no violation, in units of one of ours. */
  readonly cost: (encoded: string) => number
  /**
   * Whether other passwords match the same hash. Such a password must not replace the hash, because the account's real password may be another
   * one.
   */
  readonly isAmbiguous?: (password: string) => boolean
}

/** The work of one of our hashes, in KiB times passes. Formats state theirs in milliseconds on the machine where ours takes {@link OUR_TIME}. */
export const OUR_WORK = HASH_PARAMETERS.memoryCost * HASH_PARAMETERS.timeCost

/** Milliseconds of one of our hashes where the times of other formats were measured. */
export const OUR_TIME = 19

/** Decodes base64, with or without padding, also that of passlib (`.`) and of URLs (`-`, `_`). */
export const bytesOf = (text: string): Buffer => Buffer.from(text.replaceAll('.', '+'), 'base64')

/** Base64 that ends within a byte: no encoder writes one character behind groups of four. */
export const endsWithinByte = (base64: string): boolean => base64.replace(/=+$/, '').length % 4 === 1

export const isEqual = (one: Buffer, other: Buffer): boolean =>
  one.length === other.length && timingSafeEqual(one, other)

/** HMAC fills short keys with zeros: a password and the same one with NUL at its end have equal hashes. */
export const endsWithNul = (password: string): boolean => password.endsWith('\0')
