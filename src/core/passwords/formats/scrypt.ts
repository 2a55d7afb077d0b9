/** scrypt in PHC form, as passlib writes it: `$scrypt$ln=16,r=8,p=1$salt$digest`; and that of Firebase. */
import { createCipheriv, scryptSync } from 'node:crypto'
import {
  bytesOf,
  endsWithinByte,
  endsWithNul,
  type HashFormat,
  isEqual,
  MALFORMED,
  TOO_COSTLY,
} from './format.ts'

/** Bytes and counts: at most two to three seconds. */
const LIMITS = { lane: 268_435_456, lanes: 1_073_741_824, blockSize: 32, parallelism: 16 }

/** Bytes of all lanes that take as long as one of our hashes. */
const OUR_SIZE = 4_194_304

/** Bytes that OpenSSL may need besides the lane; it counts fewer. */
const SPARE_MEMORY = 1_048_576

interface Parameters {
  readonly logCost: number
  readonly blockSize: number
  readonly parallelism: number
}

interface Hash extends Parameters {
  readonly salt: Buffer
  readonly digest: Buffer
}

/** Bytes of one lane, which is proportional to its time. */
const laneSize = ({ logCost, blockSize }: Parameters): number => 128 * 2 ** logCost * blockSize

/** Bytes of all lanes, which are computed one after the other: proportional to its time. */
const sizeOf = (parameters: Parameters): number => laneSize(parameters) * parameters.parallelism

const violationOf = (parameters: Parameters | null): string | null => {
  // RFC 7914 §2: the block size limits the cost.
  if (parameters === null || parameters.logCost >= 16 * parameters.blockSize) return MALFORMED
  const { blockSize, parallelism } = parameters
  const isCostly =
    laneSize(parameters) > LIMITS.lane ||
    sizeOf(parameters) > LIMITS.lanes ||
    blockSize > LIMITS.blockSize ||
    parallelism > LIMITS.parallelism
  return isCostly ? TOO_COSTLY : null
}

const derive = (password: string, salt: Buffer, length: number, parameters: Parameters): Buffer =>
  scryptSync(password, salt, length, {
    cost: 2 ** parameters.logCost,
    blockSize: parameters.blockSize,
    parallelization: parameters.parallelism,
    maxmem: laneSize(parameters) + SPARE_MEMORY,
  })

const PHC =
  /^\$scrypt\$ln=([1-9]\d?),r=([1-9]\d{0,3}),p=([1-9]\d{0,3})\$([\w+/.-]{11,86})={0,2}\$([\w+/.-]{22,86})={0,2}$/

const parse = (encoded: string): Hash | null => {
  const [matched, logCost, blockSize, parallelism, salt = '', digest = ''] = PHC.exec(encoded) ?? []
  if (matched === undefined) return null
  return {
    ...{ logCost: Number(logCost), blockSize: Number(blockSize), parallelism: Number(parallelism) },
    ...{ salt: bytesOf(salt), digest: bytesOf(digest) },
  }
}

export const scrypt = {
  start: /^\$scrypt\$/,
  violation: encoded => violationOf(parse(encoded)),
  newViolation: encoded => (encoded.split('$').slice(-2).some(endsWithinByte) ? MALFORMED : null),
  cost: encoded => sizeOf(parse(encoded) as Hash) / OUR_SIZE,
  isAmbiguous: endsWithNul,
  verify(password: string, encoded: string): boolean {
    const hash = parse(encoded)
    if (hash === null) return false
    return isEqual(derive(password, hash.salt, hash.digest.length, hash), hash.digest)
  },
} satisfies HashFormat & { verify(password: string, encoded: string): boolean }

/**
 * `$fbscrypt$v=1,n=14,r=8,p=1,ss=<salt separator>,sk=<signer key>$salt$digest`: the digest is the project's signer key, encrypted with what
 * scrypt derives from the password.
 */
const FIREBASE =
  /^\$fbscrypt\$v=1,n=([1-9]\d?),r=([1-9]\d{0,2}),p=([1-9]\d?),ss=([\w+/-]{0,16}={0,2}),sk=([\w+/-]{22,128}={0,2})\$([\w+/-]{2,64}={0,2})\$([\w+/-]{22,128}={0,2})$/

const KEY_LENGTH = 32

const parseFirebase = (encoded: string): (Hash & { readonly signerKey: Buffer }) | null => {
  const [matched, logCost, blockSize, parallelism, separator = '', signerKey = '', salt = '', digest = ''] =
    FIREBASE.exec(encoded) ?? []
  if (matched === undefined) return null
  return {
    ...{ logCost: Number(logCost), blockSize: Number(blockSize), parallelism: Number(parallelism) },
    salt: Buffer.concat([bytesOf(salt), bytesOf(separator)]),
    digest: bytesOf(digest),
    signerKey: bytesOf(signerKey),
  }
}

export const firebase = {
  start: /^\$fbscrypt\$/,
  violation(encoded) {
    const hash = parseFirebase(encoded)
    return hash !== null && hash.signerKey.length !== hash.digest.length ? MALFORMED : violationOf(hash)
  },
  cost: encoded => sizeOf(parseFirebase(encoded) as Hash) / OUR_SIZE,
  isAmbiguous: endsWithNul,
  verify(password: string, encoded: string): boolean {
    const hash = parseFirebase(encoded)
    if (hash === null) return false
    const key = derive(password, hash.salt, KEY_LENGTH, hash)
    const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16))
    return isEqual(Buffer.concat([cipher.update(hash.signerKey), cipher.final()]), hash.digest)
  },
} satisfies HashFormat & { verify(password: string, encoded: string): boolean }
