import { randomBytes } from 'node:crypto'
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
