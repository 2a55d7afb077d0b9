/** argon2 in PHC form. The base64 may be padded, as .NET and PHP libraries write it. */
import { parseOptions } from '@node-rs/argon2'
import { type HashFormat, MALFORMED, OUR_WORK, TOO_COSTLY } from './format.ts'

const KEYED = 'needs a secret key to verify (keyid), which the service does not have'

/** KiB, passes and lanes: at most about a second. */
const LIMITS = { memoryCost: 262_144, timeCost: 16, parallelism: 16 }

/** A hash as the library reads it. */
export const withoutPadding = (encoded: string): string =>
  encoded
    .split('$')
    .map(part => (part.length % 4 === 0 ? part.replace(/={1,2}$/, '') : part))
    .join('$')

export const argon2: HashFormat = {
  start: /^\$argon2(id|i|d)\$/,
  violation(encoded) {
    try {
      const { memoryCost, timeCost, parallelism } = parseOptions(withoutPadding(encoded))
      const isCostly =
        memoryCost > LIMITS.memoryCost || timeCost > LIMITS.timeCost || parallelism > LIMITS.parallelism
      return isCostly ? TOO_COSTLY : null
    } catch {
      return MALFORMED
    }
  },
  newViolation: encoded => (encoded.includes(',keyid=') ? KEYED : null),
  cost(encoded) {
    // Regardless of lanes.
    const { memoryCost, timeCost } = parseOptions(withoutPadding(encoded))
    return (memoryCost * timeCost) / OUR_WORK
  },
}
