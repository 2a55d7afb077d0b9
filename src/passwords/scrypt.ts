/** scrypt hashes in PHC form, as passlib writes them: `$scrypt$ln=16,r=8,p=1$salt$digest`. */
import { scryptSync, timingSafeEqual } from 'node:crypto'

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
