/** Authenticator with a store of sessions that the test controls. */

import { AccessTokens } from '../../src/auth/access-tokens.ts'
import { Authenticator } from '../../src/auth/authenticator.ts'
import { LastRequests } from '../../src/auth/last-requests.ts'
import { newSession, type Session } from '../../src/auth/session.ts'
import type { SessionStore } from '../../src/auth/session-store.ts'
import { keyOfSecret } from '../../src/auth/signing-keys.ts'
import { UserCache } from '../../src/auth/user-cache.ts'
import { NO_METADATA } from '../../src/users/metadata.ts'
import { NO_ROLES } from '../../src/users/roles.ts'
import type { User } from '../../src/users/user.ts'
import { JWT_SECRET, manualClock } from './build.ts'

export const LIMITS = { lifetime: 86_400_000, idle: 3_600_000 }

type Found = Awaited<ReturnType<SessionStore['find']>>

/** Responds at once or when the test asks for it, with the state at the request or at the response. */
class TestStore {
  readonly users = new Map<string, User>()
  /** The key of each user. */
  readonly keys = new Map<string, number>()
  readonly sessions = new Map<string, Session>()
  /** Pending lookups. Each is called with whether it returns the state at the request. */
  readonly waiting: ((old: boolean) => void)[] = []
  /**
   * For each lookup, a function that starts its query: the time whose state it reads. Without a call, the time of the
   * request.
   */
  readonly queued: (() => void)[] = []
  lookups = 0
  later = true

  find(id: string, onStart?: () => void): Found | Promise<Found> {
    this.lookups += 1
    if (!this.later) return this.#read(id)
    let then = this.#read(id)
    this.queued.push(() => {
      then = this.#read(id)
      onStart?.()
    })
    return new Promise(resolve => {
      this.waiting.push(old => resolve(old ? then : this.#read(id)))
    })
  }

  #read(id: string): Found {
    const session = this.sessions.get(id)
    const user = session && this.users.get(session.userId)
    return session && user && { session, user, userKey: this.keys.get(user.id) ?? 0 }
  }
}

const newUser = (id: string): User => ({
  id,
  email: `${id}@example.com`,
  firstName: 'version 0',
  lastName: null,
  emailVerified: false,
  disabled: false,
  roles: NO_ROLES,
  userMetadata: NO_METADATA,
  appMetadata: NO_METADATA,
  createdAt: 0,
  updatedAt: 0,
  version: 1,
  lastRequestAt: null,
})

export const setUp = (capacity?: number) => {
  const clock = manualClock()
  const store = new TestStore()
  const tokens = new AccessTokens(
    { current: keyOfSecret(JWT_SECRET), others: [] },
    { issuer: 'gatehouse', audiences: ['gatehouse'] },
  )
  const userCache = new UserCache()
  const lastRequests = new LastRequests({
    userCache,
    store: { noteLastRequests: async () => undefined },
    idle: LIMITS.idle,
    closing: 0,
    onFailure: error => {
      throw error
    },
  })
  const parts = { tokens, sessions: store, userCache, lastRequests, limits: LIMITS, clock: clock.now }
  const authenticator = new Authenticator(capacity === undefined ? parts : { ...parts, capacity })
  authenticator.setFeedConnected(true)
  /** Adds a session of a user. @returns it with its token. */
  const open = (userId: string): { session: Session; token: string } => {
    if (!store.users.has(userId)) {
      store.users.set(userId, newUser(userId))
      store.keys.set(userId, store.keys.size + 1)
    }
    const session = newSession(userId, clock.now(), LIMITS)
    store.sessions.set(session.id, session)
    return { session, token: tokens.issue(session) }
  }
  /** Changes a user like an engine: first in the store, then with a notification to the cache. */
  const change = (userId: string, changes: Partial<User>): void => {
    const user = store.users.get(userId)
    if (user !== undefined) store.users.set(userId, { ...user, ...changes })
    authenticator.invalidateUser(userId)
  }
  const revoke = (session: Session): void => {
    store.sessions.delete(session.id)
    authenticator.invalidateUser(session.userId)
  }
  return { clock, store, authenticator, userCache, lastRequests, open, change, revoke }
}

/** Runs everything that is ready to run. */
export const settle = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
