/**
 * Keys for programs: API keys (`gate_pat_…`), admin keys (`gate_adm_…`) and client secrets (`gate_cls_…`). A key is its prefix, 32 random
 * bytes and the CRC-32 of both, in base62. Secret scanners recognise the prefix, and verify the checksum without a request. The store has only
 * the SHA-256: 256 random bits need no slow hash.
 */
import { createHash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

export const API_KEY_PREFIX = 'gate_pat_'
export const ADMIN_KEY_PREFIX = 'gate_adm_'
export const CLIENT_SECRET_PREFIX = 'gate_cls_'

export type KeyPrefix = typeof API_KEY_PREFIX | typeof ADMIN_KEY_PREFIX | typeof CLIENT_SECRET_PREFIX

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const SECRET_BYTES = 32
const SECRET_LENGTH = 43
const CHECKSUM_LENGTH = 6

export const KEY_LENGTH = API_KEY_PREFIX.length + SECRET_LENGTH + CHECKSUM_LENGTH

/** Lists show the prefix and four digits, 24 of 256 bits. */
const SHOWN_LENGTH = API_KEY_PREFIX.length + 4

const base62 = (value: bigint, length: number): string => {
  let digits = ''
  for (let rest = value; digits.length < length; rest /= 62n) digits = DIGITS[Number(rest % 62n)] + digits
  return digits
}

const checksumOf = (text: string): string => base62(BigInt(crc32(text)), CHECKSUM_LENGTH)

export interface NewOpaqueKey {
  /** Shown once, never stored. */
  readonly text: string
  readonly digest: string
  /** The beginning, by which its owner recognises it. */
  readonly shownPrefix: string
}

/** SHA-256 in hexadecimal. */
export const keyDigest = (key: string): string => createHash('sha256').update(key).digest('hex')

export const newOpaqueKey = (prefix: KeyPrefix): NewOpaqueKey => {
  const secret = base62(BigInt(`0x${randomBytes(SECRET_BYTES).toString('hex')}`), SECRET_LENGTH)
  const unchecked = prefix + secret
  const text = unchecked + checksumOf(unchecked)
  return { text, digest: keyDigest(text), shownPrefix: text.slice(0, SHOWN_LENGTH) }
}

/** Whether prefix, length and checksum are those of a key: mistyped and invented keys are rejected without the store. */
export const isOpaqueKey = (prefix: KeyPrefix, text: string): boolean =>
  text.length === KEY_LENGTH &&
  text.startsWith(prefix) &&
  text.endsWith(checksumOf(text.slice(0, -CHECKSUM_LENGTH)))
