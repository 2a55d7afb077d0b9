import { RATE_LIMITS, type RateLimits } from '#core/rate-limits/limits'
import { rateLimitsOf } from '#feature/assembly'
import { allFeatures } from '#features/built-in'

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
