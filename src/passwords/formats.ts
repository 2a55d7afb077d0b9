import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto'
import { parseOptions } from '@node-rs/argon2'

/** The algorithm is the library's default, argon2id (its enum exists at compile time alone). */
export const HASH_PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** Of another kind, or of argon2's first version, a hash is not what we would make today. */
const CURRENT = '$argon2id$v=19$'

/** Whether a hash is weaker than today's parameters, so that it should be replaced at the next sign-in. */
export const isWeak = (encoded: string): boolean => {
  if (!encoded.startsWith(CURRENT)) return true
  const { memoryCost, timeCost } = parseOptions(encoded)
  return memoryCost < HASH_PARAMETERS.memoryCost || timeCost < HASH_PARAMETERS.timeCost
}

/** The library's lengths, in bytes. */
const SALT_LENGTH = 16
const DIGEST_LENGTH = 32

/** A hash of no password, made without hashing: comparing with it costs what comparing with a real one does. */
export const dummyHash = (): string => {
  const { memoryCost, timeCost, parallelism } = HASH_PARAMETERS
  const [salt, digest] = [SALT_LENGTH, DIGEST_LENGTH].map(length =>
    randomBytes(length).toString('base64').replaceAll('=', ''),
  )
  return `${CURRENT}m=${memoryCost},t=${timeCost},p=${parallelism}$${salt}$${digest}`
}

/** scrypt hashes in PHC form, as passlib writes them: `$scrypt$ln=16,r=8,p=1$salt$digest`. */

export interface ScryptHash {
  readonly logCost: number
  readonly blockSize: number
  readonly parallelism: number
  readonly salt: Buffer
  readonly digest: Buffer
}

const FORM =
  /^\$scrypt\$ln=([1-9]\d?),r=([1-9]\d{0,3}),p=([1-9]\d{0,3})\$([\w+/.-]{11,86})={0,2}\$([\w+/.-]{22,86})={0,2}$/

/** Base64, also with the characters that passlib (`.`) and the URL-safe alphabet (`-`, `_`) have in place of `+` and `/`. */
const bytes = (text: string): Buffer => Buffer.from(text.replaceAll('.', '+'), 'base64')

/** @returns `null` when it is not of that form; whether its cost can be borne is not looked at. */
export const parseScrypt = (encoded: string): ScryptHash | null => {
  const [matched, logCost, blockSize, parallelism, salt = '', digest = ''] = FORM.exec(encoded) ?? []
  if (matched === undefined) return null
  return {
    logCost: Number(logCost),
    blockSize: Number(blockSize),
    parallelism: Number(parallelism),
    salt: bytes(salt),
    digest: bytes(digest),
  }
}

/** Bytes that one of its lanes fills, which is also what it costs in time. */
export const laneSize = ({ logCost, blockSize }: ScryptHash): number => 128 * 2 ** logCost * blockSize

/** Beside its lanes OpenSSL counts some blocks, less than this. */
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

/** Which hashes of passwords are taken from elsewhere, how much each may cost, and what each costs beside one of ours. */

/** Characters; with the longest salt and digest that anybody uses a hash has some 250. */
const MAX_LENGTH = 512

const UNKNOWN = 'must be an argon2, bcrypt or scrypt hash'
const MALFORMED = 'is malformed'
const TOO_COSTLY = 'costs too much to verify'

/** KiB, passes and lanes: at the most about a second. */
const ARGON2_LIMITS = { memoryCost: 262_144, timeCost: 16, parallelism: 16 }

/** Each step doubles the work: 14 takes about a second. Below 4 bcrypt is not defined. */
const BCRYPT_COSTS = { least: 4, most: 14 }

/** Bytes at once and in all, and lanes: at the most two to three seconds. */
const SCRYPT_LIMITS = { lane: 268_435_456, lanes: 1_073_741_824, blockSize: 32, parallelism: 16 }

const argon2Fault = (encoded: string): string | null => {
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

/** Sixteen bytes of salt and twenty-three of digest, in bcrypt's own base64. */
const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/

const bcryptFault = (encoded: string): string | null => {
  const cost = Number(BCRYPT.exec(encoded)?.[1] ?? 0)
  if (cost < BCRYPT_COSTS.least) return MALFORMED
  return cost > BCRYPT_COSTS.most ? TOO_COSTLY : null
}

/** Bytes that all lanes fill, one after the other: its cost in time. */
const scryptSize = (hash: ScryptHash): number => laneSize(hash) * hash.parallelism

const scryptFault = (encoded: string): string | null => {
  const hash = parseScrypt(encoded)
  // RFC 7914 §2: with small blocks the cost has an end.
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

const FAULTS: Readonly<Record<HashKind, (encoded: string) => string | null>> = {
  argon2: argon2Fault,
  bcrypt: bcryptFault,
  scrypt: scryptFault,
}

export const hashKind = (encoded: string): HashKind | null =>
  KINDS.find(([start]) => start.test(encoded))?.[1] ?? null

/** @returns why a hash cannot be taken, in the words of the error body; `null` when it can. */
export const hashViolation = (encoded: string): string | null => {
  const kind = hashKind(encoded)
  if (kind === null) return UNKNOWN
  return encoded.length > MAX_LENGTH ? MALFORMED : FAULTS[kind](encoded)
}

/** What takes each algorithm as long as one of our hashes (5 ms where it was measured), in its own measure of work. */
const OUR_COST = {
  /** KiB times passes; lanes share them. */
  argon2: HASH_PARAMETERS.memoryCost * HASH_PARAMETERS.timeCost,
  /** Rounds: a cost of 6 takes 4 ms, 7 takes 8 ms. */
  bcrypt: 80,
  /** Bytes. */
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

/** @returns how long it takes to compare a password with a hash, estimated, in units of one of ours; 0 for what matches nothing. */
export const relativeCost = (encoded: string): number => {
  const kind = hashKind(encoded)
  return kind === null || hashViolation(encoded) !== null ? 0 : COSTS[kind](encoded) / OUR_COST[kind]
}

/** Bytes of UTF-8: what follows is not in the hash. */
const BCRYPT_LENGTH = 72

/**
 * Whether other passwords match the same hash: bcrypt leaves out what follows 72 bytes, and repeats a password with a NUL
 * between. Such a match must not be hashed anew: it may have been another password than the account's.
 * @param password one that matches, in any normalisation form.
 */
export const isAmbiguous = (password: string, encoded: string): boolean =>
  hashKind(encoded) === 'bcrypt' &&
  [password, password.normalize('NFC')].some(
    form => Buffer.byteLength(form) > BCRYPT_LENGTH || form.includes('\0'),
  )
