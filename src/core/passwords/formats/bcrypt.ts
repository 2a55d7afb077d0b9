/** bcrypt in crypt form, and the two forms of frameworks that hash the password before: of WordPress 6.8 and of Django. */
import { createHash, createHmac } from 'node:crypto'
import { type HashFormat, MALFORMED, TOO_COSTLY } from './format.ts'

/** Each step doubles the time: 14 takes about a second. bcrypt is not defined below 4. */
const COSTS = { least: 4, most: 14 }

/** Rounds that take as long as one of our hashes: between those of the costs 6 (64) and 7 (128). */
const OUR_ROUNDS = 80

/** 16 bytes of salt in 22 characters, and 23 of digest in 31, in bcrypt's own base64. */
const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/

const BASE64 = './ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** @param spare the bits of the last character that belong to no byte. */
const withoutSpareBits = (text: string, spare: number): string => {
  const last = BASE64.indexOf(text.slice(-1))
  return `${text.slice(0, -1)}${BASE64.charAt((last >> spare) << spare)}`
}

const SALT_END = -31

/** Without the bits in the last characters of salt and digest that belong to no byte: other implementations may set them. */
export const canonicalBcrypt = (encoded: string): string =>
  withoutSpareBits(encoded.slice(0, SALT_END), 4) + withoutSpareBits(encoded.slice(SALT_END), 2)

const costOf = (encoded: string): number => Number(BCRYPT.exec(encoded)?.[1] ?? 0)

const violationOf = (encoded: string): string | null => {
  const cost = costOf(encoded)
  if (cost < COSTS.least) return MALFORMED
  return cost > COSTS.most ? TOO_COSTLY : null
}

/** Bytes of a password that bcrypt reads. */
const LENGTH = 72

export const bcrypt: HashFormat = {
  start: /^\$2[aby]\$/,
  violation: violationOf,
  cost: encoded => 2 ** costOf(encoded) / OUR_ROUNDS,
  // It ignores everything after 72 bytes, and repeats the password with a NUL as separator.
  isAmbiguous: password => Buffer.byteLength(password) > LENGTH || password.includes('\0'),
}

/** A format that is bcrypt of a hash of the password. */
const prehashed = (prefix: string, start: RegExp): HashFormat & { bcryptOf(encoded: string): string } => {
  const bcryptOf = (encoded: string): string => encoded.slice(prefix.length)
  return {
    start,
    bcryptOf,
    violation: encoded => violationOf(bcryptOf(encoded)),
    cost: encoded => bcrypt.cost(bcryptOf(encoded)),
  }
}

/** `$wp$2y$10$…`: bcrypt of the HMAC with SHA-384, in base64. */
export const wordpress = {
  ...prehashed('$wp', /^\$wp\$2y\$/),
  passwordOf: (password: string): string =>
    createHmac('sha384', 'wp-sha384').update(password).digest('base64'),
}

/** `bcrypt_sha256$$2b$12$…`: bcrypt of the SHA-256, in hexadecimal. */
export const djangoBcrypt = {
  ...prehashed('bcrypt_sha256$', /^bcrypt_sha256\$\$2[aby]\$/),
  passwordOf: (password: string): string => createHash('sha256').update(password).digest('hex'),
}
