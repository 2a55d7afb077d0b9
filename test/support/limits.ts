import { RATE_LIMITS, type RateLimitName, type RateLimits } from '../../src/rate-limits/limits.ts'

/** More requests than any test sends. */
const UNREACHED = 100_000

/** Every limit for each client address, with windows of one length. Limits without `points` are on, but not reached. */
export const perAddress = (
  points: Partial<Record<RateLimitName, number>> = {},
  seconds = 60,
): RateLimits['perAddress'] => {
  const names = Object.keys(RATE_LIMITS.perAddress) as RateLimitName[]
  const limits = names.map(name => [name, { points: points[name] ?? UNREACHED, seconds }])
  return Object.fromEntries(limits)
}
