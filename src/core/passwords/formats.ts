/** Formats of password hashes: our parameters, the foreign formats that are accepted, and their cost relative to ours. */
import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto'
import { parseOptions } from '@node-rs/argon2'

/** argon2id, which is the library's default (its enum exists only at compile time). */
export const HASH_PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** The start of current hashes; others use another algorithm, or argon2's first version. */
const CURRENT = '$argon2id$v=19$'

/** Whether a hash is weaker than the current parameters, so that the next sign-in should replace it. */
export const isWeak = (encoded: string): boolean => {
  if (!encoded.startsWith(CURRENT)) return true
  const { memoryCost, timeCost } = parseOptions(encoded)
  return memoryCost < HASH_PARAMETERS.memoryCost || timeCost < HASH_PARAMETERS.timeCost
}

const { memoryCost: MEMORY, timeCost: PASSES, parallelism: LANES } = HASH_PARAMETERS

const OURS = `${CURRENT}m=${MEMORY},t=${PASSES},p=${LANES}$`

/** Whether a hash has our parameters, so that comparing it takes as long as {@link dummyHash}. */
export const isOurs = (encoded: string): boolean => encoded.startsWith(OURS)

/** The library's lengths, in bytes. */
const SALT_LENGTH = 16
const DIGEST_LENGTH = 32

/** A random hash that no password matches. Verifying it costs as much as verifying a real one. */
export const dummyHash = (): string => {
  const [salt, digest] = [SALT_LENGTH, DIGEST_LENGTH].map(length =>
    randomBytes(length).toString('base64').replaceAll('=', ''),
  )
  return `${OURS}${salt}$${digest}`
}

export interface ScryptHash {
  readonly logCost: number
  readonly blockSize: number
  readonly parallelism: number
  readonly salt: Buffer
  readonly digest: Buffer
}

/** PHC form, as passlib writes it: `$scrypt$ln=16,r=8,p=1$salt$digest`. */
const SCRYPT =
  /^\$scrypt\$ln=([1-9]\d?),r=([1-9]\d{0,3}),p=([1-9]\d{0,3})\$([\w+/.-]{11,86})={0,2}\$([\w+/.-]{22,86})={0,2}$/

/** Decodes base64, also that of passlib (`.`) and of URLs (`-`, `_`). */
const bytes = (text: string): Buffer => Buffer.from(text.replaceAll('.', '+'), 'base64')

/** @returns `null` if it is not of that form. Does not check the cost. */
export const parseScrypt = (encoded: string): ScryptHash | null => {
  const [matched, logCost, blockSize, parallelism, salt = '', digest = ''] = SCRYPT.exec(encoded) ?? []
  if (matched === undefined) return null
  return {
    logCost: Number(logCost),
    blockSize: Number(blockSize),
    parallelism: Number(parallelism),
    salt: bytes(salt),
    digest: bytes(digest),
  }
}

/** Bytes of one lane, which is proportional to its time. */
export const laneSize = ({ logCost, blockSize }: ScryptHash): number => 128 * 2 ** logCost * blockSize

/** Bytes that OpenSSL may need besides the lane; it counts fewer. */
const SPARE_MEMORY = 1_048_576

export const verifyScrypt = (password: string, hash: ScryptHash): boolean => {
  const { logCost, blockSize, parallelism, salt, digest } = hash
  const computed = scryptSync(password, salt, digest.length, {
    cost: 2 ** logCost,
    blockSize,
    parallelization: parallelism,
    maxmem: laneSize(hash) + SPARE_MEMORY,
  })
  return timingSafeEqual(computed, digest)
}

/** Maximum characters. Hashes with the longest salts and digests in use have about 250. */
const MAX_LENGTH = 512

const UNKNOWN = 'must be an argon2, bcrypt or scrypt hash'
const MALFORMED = 'is malformed'
const TOO_COSTLY = 'costs too much to verify'
const KEYED = 'needs a secret key to verify (keyid), which the service does not have'

/** KiB, passes and lanes: at most about a second. */
const ARGON2_LIMITS = { memoryCost: 262_144, timeCost: 16, parallelism: 16 }

/** Each step doubles the time: 14 takes about a second. bcrypt is not defined below 4. */
const BCRYPT_COSTS = { least: 4, most: 14 }

/** Bytes and counts: at most two to three seconds. */
const SCRYPT_LIMITS = { lane: 268_435_456, lanes: 1_073_741_824, blockSize: 32, parallelism: 16 }

const argon2Violation = (encoded: string): string | null => {
  try {
    const { memoryCost, timeCost, parallelism } = parseOptions(encoded)
    const costly =
      memoryCost > ARGON2_LIMITS.memoryCost ||
      timeCost > ARGON2_LIMITS.timeCost ||
      parallelism > ARGON2_LIMITS.parallelism
    return costly ? TOO_COSTLY : null
  } catch {
    return MALFORMED
  }
}

/** 16 bytes of salt in 22 characters, and 23 of digest in 31, in bcrypt's own base64. */
const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/

const BCRYPT_BASE64 = './ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** @param spare the bits of the last character that belong to no byte. */
const withoutSpareBits = (text: string, spare: number): string => {
  const last = BCRYPT_BASE64.indexOf(text.slice(-1))
  return `${text.slice(0, -1)}${BCRYPT_BASE64.charAt((last >> spare) << spare)}`
}

const BCRYPT_SALT_END = -31

/** Without the bits in the last characters of salt and digest that belong to no byte: other implementations may set them. */
export const canonicalBcrypt = (encoded: string): string =>
  withoutSpareBits(encoded.slice(0, BCRYPT_SALT_END), 4) + withoutSpareBits(encoded.slice(BCRYPT_SALT_END), 2)

const bcryptViolation = (encoded: string): string | null => {
  const cost = Number(BCRYPT.exec(encoded)?.[1] ?? 0)
  if (cost < BCRYPT_COSTS.least) return MALFORMED
  return cost > BCRYPT_COSTS.most ? TOO_COSTLY : null
}

/** Bytes of all lanes, which are computed one after the other: proportional to its time. */
const scryptSize = (hash: ScryptHash): number => laneSize(hash) * hash.parallelism

const scryptViolation = (encoded: string): string | null => {
  const hash = parseScrypt(encoded)
  // RFC 7914 §2: the block size limits the cost.
  if (hash === null || hash.logCost >= 16 * hash.blockSize) return MALFORMED
  const lane = laneSize(hash)
  const costly =
    lane > SCRYPT_LIMITS.lane ||
    scryptSize(hash) > SCRYPT_LIMITS.lanes ||
    hash.blockSize > SCRYPT_LIMITS.blockSize ||
    hash.parallelism > SCRYPT_LIMITS.parallelism
  return costly ? TOO_COSTLY : null
}

export type HashKind = 'argon2' | 'bcrypt' | 'scrypt'

const KINDS: readonly (readonly [RegExp, HashKind])[] = [
  [/^\$argon2(id|i|d)\$/, 'argon2'],
  [/^\$2[aby]\$/, 'bcrypt'],
  [/^\$scrypt\$/, 'scrypt'],
]

const VIOLATIONS: Readonly<Record<HashKind, (encoded: string) => string | null>> = {
  argon2: argon2Violation,
  bcrypt: bcryptViolation,
  scrypt: scryptViolation,
}

export const hashKind = (encoded: string): HashKind | null =>
  KINDS.find(([start]) => start.test(encoded))?.[1] ?? null

/** A message of the error body; `null` if passwords can be compared with the hash. */
const comparisonViolation = (encoded: string): string | null => {
  const kind = hashKind(encoded)
  if (kind === null) return UNKNOWN
  return encoded.length > MAX_LENGTH ? MALFORMED : VIOLATIONS[kind](encoded)
}

export const isComparable = (encoded: string): boolean => comparisonViolation(encoded) === null

/** A message of the error body; `null` if a new hash is accepted. Stored ones may be comparable without it. */
export const hashViolation = (encoded: string): string | null => {
  const violation = comparisonViolation(encoded)
  if (violation !== null) return violation
  const kind = hashKind(encoded)
  if (kind === 'argon2' && encoded.includes(',keyid=')) return KEYED
  // Base64 that ends within a byte: no encoder writes one character behind groups of four.
  return kind === 'scrypt' &&
    encoded
      .split('$')
      .slice(-2)
      .some(part => part.length % 4 === 1)
    ? MALFORMED
    : null
}

/** The work of each algorithm that takes as long as one of our hashes. */
const OUR_COST = {
  /** KiB times passes, regardless of lanes. */
  argon2: HASH_PARAMETERS.memoryCost * HASH_PARAMETERS.timeCost,
  /** Rounds: between those of the costs 6 (64) and 7 (128). */
  bcrypt: 80,
  scrypt: 4_194_304,
}

const COSTS: Readonly<Record<HashKind, (encoded: string) => number>> = {
  argon2(encoded) {
    const { memoryCost, timeCost } = parseOptions(encoded)
    return memoryCost * timeCost
  },
  bcrypt: encoded => 2 ** Number(BCRYPT.exec(encoded)?.[1]),
  scrypt: encoded => scryptSize(parseScrypt(encoded) as ScryptHash),
}

/** The estimated time to verify a hash, in units of one of our hashes; 0 if it is not accepted. */
export const relativeCost = (encoded: string): number => {
  const kind = hashKind(encoded)
  return kind === null || !isComparable(encoded) ? 0 : COSTS[kind](encoded) / OUR_COST[kind]
}

const BCRYPT_LENGTH = 72

/**
 * Whether other passwords match the same bcrypt hash: it ignores everything after 72 bytes, and repeats the password with a NUL as
 * separator. Such a password must not replace the hash, because the account's real password may be another one.
 */
export const isAmbiguous = (password: string, encoded: string): boolean =>
  hashKind(encoded) === 'bcrypt' &&
  [password, password.normalize('NFC')].some(
    form => Buffer.byteLength(form) > BCRYPT_LENGTH || form.includes('\0'),
  )
