/**
 * PBKDF2: in PHC form (`$pbkdf2-sha256$i=600000$salt$digest`, and passlib's, whose iterations have no name), Django's
 * (`pbkdf2_sha256$600000$salt$digest`, whose salt is text), and that of ASP.NET Identity (`{aspnet}AQAAAA…`, versions 2 and 3).
 */
import { pbkdf2Sync } from 'node:crypto'
import {
  bytesOf,
  endsWithinByte,
  endsWithNul,
  type HashFormat,
  isEqual,
  MALFORMED,
  OUR_TIME,
  TOO_COSTLY,
} from './format.ts'

type Digest = 'sha1' | 'sha256' | 'sha512'

interface Hash {
  readonly digest: Digest
  readonly iterations: number
  readonly salt: Buffer
  readonly key: Buffer
}

/** Bytes of an output block, and the milliseconds of 100,000 iterations of it. */
const DIGESTS: Readonly<Record<Digest, { readonly length: number; readonly time: number }>> = {
  sha1: { length: 20, time: 18 },
  sha256: { length: 32, time: 17 },
  sha512: { length: 64, time: 52 },
}

/** Milliseconds: as much as the most that other formats may take. */
const MOST = 3_000

/** Bytes: a shorter salt or key protects nothing. */
const LEAST_SALT = 4
const LEAST_KEY = 16
const MOST_BYTES = 128

const PHC =
  /^\$pbkdf2(?:-(sha1|sha256|sha512))?\$(?:i=)?([1-9]\d{0,9})(?:,l=\d{1,3})?\$([\w+/.-]{1,172}={0,2})\$([\w+/.-]{1,172}={0,2})$/
const DJANGO =
  /^pbkdf2_(sha1|sha256|sha512)\$([1-9]\d{0,9})\$([\x21-\x23\x25-\x7e]{1,128})\$([\w+/]{1,172}={0,2})$/
const ASP_NET = /^\{aspnet\}([\w+/]{60,400}={0,2})$/

/** By the number in a hash of ASP.NET. */
const ASP_NET_DIGESTS: readonly Digest[] = ['sha1', 'sha256', 'sha512']
const ASP_NET_2 = { iterations: 1_000, salt: 16, key: 32 }

const parseAspNet = (bytes: Buffer): Hash | null => {
  if (bytes[0] === 0) {
    const { iterations, salt, key } = ASP_NET_2
    if (bytes.length !== 1 + salt + key) return null
    return { digest: 'sha1', iterations, salt: bytes.subarray(1, 1 + salt), key: bytes.subarray(1 + salt) }
  }
  if (bytes[0] !== 1 || bytes.length < 13) return null
  const [prf = 0, iterations = 0, saltLength = 0] = [1, 5, 9].map(offset => bytes.readUInt32BE(offset))
  const digest = ASP_NET_DIGESTS[prf]
  if (digest === undefined || 13 + saltLength > bytes.length) return null
  return {
    ...{ digest, iterations },
    ...{ salt: bytes.subarray(13, 13 + saltLength), key: bytes.subarray(13 + saltLength) },
  }
}

const parse = (encoded: string): Hash | null => {
  const phc = PHC.exec(encoded)
  if (phc !== null) {
    const [, digest = 'sha1', iterations, salt = '', key = ''] = phc
    return {
      ...{ digest: digest as Digest, iterations: Number(iterations) },
      ...{ salt: bytesOf(salt), key: bytesOf(key) },
    }
  }
  const django = DJANGO.exec(encoded)
  if (django !== null) {
    const [, digest, iterations, salt = '', key = ''] = django
    return {
      ...{ digest: digest as Digest, iterations: Number(iterations) },
      ...{ salt: Buffer.from(salt), key: bytesOf(key) },
    }
  }
  const [, aspNet] = ASP_NET.exec(encoded) ?? []
  return aspNet === undefined ? null : parseAspNet(bytesOf(aspNet))
}

/** Milliseconds on the machine of {@link OUR_TIME}. */
const timeOf = ({ digest, iterations, key }: Hash): number => {
  const { length, time } = DIGESTS[digest]
  return (iterations / 100_000) * time * Math.ceil(key.length / length)
}

const isShaped = ({ iterations, salt, key }: Hash): boolean =>
  iterations > 0 &&
  salt.length >= LEAST_SALT &&
  salt.length <= MOST_BYTES &&
  key.length >= LEAST_KEY &&
  key.length <= MOST_BYTES

export const pbkdf2 = {
  start: /^(?:\$pbkdf2(?:-\w+)?\$|pbkdf2_\w+\$|\{aspnet\})/,
  violation(encoded) {
    const hash = parse(encoded)
    if (hash === null || !isShaped(hash)) return MALFORMED
    return timeOf(hash) > MOST ? TOO_COSTLY : null
  },
  newViolation: encoded =>
    encoded.startsWith('$') && encoded.split('$').slice(-2).some(endsWithinByte) ? MALFORMED : null,
  cost: encoded => timeOf(parse(encoded) as Hash) / OUR_TIME,
  isAmbiguous: endsWithNul,
  verify(password: string, encoded: string): boolean {
    const hash = parse(encoded)
    if (hash === null) return false
    const { digest, iterations, salt, key } = hash
    return isEqual(pbkdf2Sync(password, salt, iterations, key.length, digest), key)
  },
} satisfies HashFormat & { verify(password: string, encoded: string): boolean }
