import { allFeatures } from '../../src/built-in-features.ts'
import { rateLimitsOf } from '../../src/feature.ts'
import { RATE_LIMITS, type RateLimits } from '../../src/rate-limits/limits.ts'

/** More requests than any test sends. */
const UNREACHED = 100_000

/** Every limit for each client address, also those of features, with windows of one length. Limits without `points` are on, but not reached. */
export const perAddress = (
  points: Readonly<Record<string, number>> = {},
  seconds = 60,
): RateLimits['perAddress'] => {
  const names = Object.keys({ ...RATE_LIMITS.perAddress, ...rateLimitsOf(allFeatures()) })
  const limits = names.map(name => [name, { points: points[name] ?? UNREACHED, seconds }])
  return Object.fromEntries(limits)
}
