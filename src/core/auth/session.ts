/** Sessions: one for each sign-in. */
import { newId } from '#base/ids'

export interface SessionClient {
  readonly ip: string | null
  readonly userAgent: string | null
}

const UNKNOWN_CLIENT: SessionClient = { ip: null, userAgent: null }

/** Characters of a user agent that are stored. */
export const USER_AGENT_LENGTH = 256

/** The `amr` of a session whose sign-in is not known, or that no sign-in has opened. */
export const NO_AMR: readonly string[] = Object.freeze([])

/** Timestamps are milliseconds since the epoch; `expiresAt` is a whole second, like a token's `exp`. */
export interface Session extends SessionClient {
  readonly id: string
  readonly userId: string
  readonly createdAt: number
  /** The absolute end: no request extends it. */
  readonly expiresAt: number
  /** The sign-in method; `null` if an earlier release opened the session. */
  readonly method: string | null
  /** Values of RFC 8176; `mfa` last. Empty if it is not known. */
  readonly amr: readonly string[]
  /** The admin key that impersonates the user; `null` in a session of their own. */
  readonly impersonatedBy: string | null
  /** At sign-in, or by re-authentication since; 0 if no proof counts any more. Nobody's if it is impersonated. */
  readonly authenticatedAt: number
  /** The idle time counts from here. Exact in memory; older in the store (`last-requests.ts`). */
  readonly lastRequestAt: number
}

export type SessionAuthentication = Pick<Session, 'method' | 'amr'>

export interface SessionLimits {
  /** Milliseconds until the absolute end. */
  readonly lifetime: number
  readonly idle: number
}

export const newSession = (
  userId: string,
  now: number,
  { lifetime }: SessionLimits,
  { method, amr }: SessionAuthentication,
  { ip, userAgent }: SessionClient = UNKNOWN_CLIENT,
): Session => ({
  id: newId(),
  userId,
  createdAt: now,
  expiresAt: Math.ceil((now + lifetime) / 1_000) * 1_000,
  method,
  amr,
  impersonatedBy: null,
  authenticatedAt: now,
  lastRequestAt: now,
  ip,
  userAgent: userAgent?.slice(0, USER_AGENT_LENGTH) ?? null,
})
