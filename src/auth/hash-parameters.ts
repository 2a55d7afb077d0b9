import { parseOptions } from '@node-rs/argon2'

/** The algorithm is the library's default, argon2id (its enum exists at compile time alone). */
export const HASH_PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** Whether a hash is weaker than today's parameters, so that it should be replaced at the next sign-in. */
export const isWeak = (encoded: string): boolean => {
  const { memoryCost, timeCost } = parseOptions(encoded)
  return memoryCost < HASH_PARAMETERS.memoryCost || timeCost < HASH_PARAMETERS.timeCost
}
