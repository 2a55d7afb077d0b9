/** Our own hashes: argon2id, in PHC form. */
import { randomBytes } from 'node:crypto'
import { parseOptions } from '@node-rs/argon2'

/** argon2id, which is the library's default (its enum exists only at compile time). */
export const HASH_PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** The start of current hashes; others use another algorithm, or argon2's first version. */
const CURRENT = '$argon2id$v=19$'

/** Whether a hash is weaker than the current parameters, so that the next sign-in should replace it. */
export const isWeak = (encoded: string): boolean => {
  // Padded base64 is of another library.
  if (!encoded.startsWith(CURRENT) || encoded.endsWith('=') || encoded.includes('=$')) return true
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
