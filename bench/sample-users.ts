/** Users with a session each: the same on every engine, except for ids and timestamps. */
import { newId } from '#base/ids'
import { newSession } from '#core/auth/session'
import { dummyHash } from '#core/passwords/our-hash'
import type { SeedAccount, SeedSession } from '#core/store/seed'
import { newFields } from '#core/users/fields'

/** Milliseconds; the defaults of the configuration. */
export const LIMITS = { lifetime: 30 * 86_400_000, idle: 10 * 86_400_000 }

/** Users added in one transaction. */
const SLICE = 25_000

const PASSWORD_HASH = dummyHash()

const digits = (value: number): string => String(value).padStart(8, '0')

/** A permutation that looks random: the factor is prime, so it is coprime to every count except its multiples. */
const scattered = (index: number, count: number): number => (index * 7_654_321) % count

/** First names are in order of sign-up, last names are scattered. All accounts have the same length. */
const sample = (index: number, count: number): SeedAccount => {
  const now = Date.now()
  const user = {
    id: newId(),
    email: `user${digits(index)}@example.com`,
    passwordHash: PASSWORD_HASH,
    ...newFields({ firstName: `First${digits(index)}`, lastName: `Last${digits(scattered(index, count))}` }),
    emailVerified: true,
    disabled: false,
    createdAt: now,
    updatedAt: now,
  }
  return { user, session: newSession(user.id, now, LIMITS, { method: 'password', amr: ['pwd'] }) }
}

/** Yields users in slices of one transaction. */
export const samples = function* (count: number): Generator<readonly SeedAccount[]> {
  for (let from = 0; from < count; from += SLICE) {
    const length = Math.min(SLICE, count - from)
    yield Array.from({ length }, (_, index) => sample(from + index, count))
  }
}

/** A session as its access token needs it, and the number that the store assigned to its user. */
export interface SampleSession extends SeedSession {
  readonly userKey: number
}

/** A query for the sessions of the users whose number is a multiple of `every`, for both engines. */
export const selectSessions = (every: number): string =>
  `SELECT sessions.id, users.id AS "userId", users.key AS "userKey", sessions.created_at AS "createdAt",
   expires_at AS "expiresAt" FROM users JOIN sessions ON sessions.user_key = users.key WHERE users.key % ${every} = 0`
