import { newId } from '../ids.ts'

/** Where a session was opened from, as its owner is shown it. */
export interface SessionClient {
  readonly ip: string | null
  readonly userAgent: string | null
}

/** Of a session that nobody's request opened. */
const NO_CLIENT: SessionClient = { ip: null, userAgent: null }

/** Characters of a user agent that are kept. */
const USER_AGENT_LENGTH = 256

/** What one sign-in opened. Timestamps are milliseconds since the epoch; `expiresAt` is a whole second, as a token's `exp` is. */
export interface Session extends SessionClient {
  readonly id: string
  readonly userId: string
  readonly createdAt: number
  /** The session's absolute end, whatever happens. */
  readonly expiresAt: number
  /** The id of the admin key by which somebody acts as the user; `null` in a session of the user's own. */
  readonly impersonatedBy: string | null
  /** From here the idle time counts; exact in memory, in the store up to a minute older (`last-requests.ts`). */
  readonly lastRequestAt: number
}

export interface SessionLimits {
  /** Milliseconds until the absolute end. */
  readonly lifetime: number
  /** Milliseconds without a request after which a session ends. */
  readonly idle: number
}

export const newSession = (
  userId: string,
  now: number,
  { lifetime }: SessionLimits,
  { ip, userAgent }: SessionClient = NO_CLIENT,
): Session => ({
  id: newId(),
  userId,
  createdAt: now,
  expiresAt: Math.ceil((now + lifetime) / 1_000) * 1_000,
  impersonatedBy: null,
  lastRequestAt: now,
  ip,
  userAgent: userAgent?.slice(0, USER_AGENT_LENGTH) ?? null,
})
