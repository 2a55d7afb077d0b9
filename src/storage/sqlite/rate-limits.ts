import type { OpenRateLimit } from '../../rate-limits/limits.ts'
import { memoryLimiter, rateLimit } from '../rate-limits.ts'

/** In memory: a restart forgets them, and processes that share a file count each for itself. Nothing is written for a refusal. */
export const rateLimits: OpenRateLimit = options => rateLimit(memoryLimiter(options))
