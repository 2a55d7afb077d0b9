import type { RateLimitName, RateLimits } from '../../src/rate-limits/limits.ts'

/** Limits for each client address, all with windows of one length. */
export const perAddress = (
  points: Record<RateLimitName, number>,
  seconds = 60,
): RateLimits['perAddress'] => ({
  'sign-up': { points: points['sign-up'], seconds },
  'sign-in': { points: points['sign-in'], seconds },
  password: { points: points.password, seconds },
  mail: { points: points.mail, seconds },
})
