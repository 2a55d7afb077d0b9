/** Authenticator with a store of sessions and API keys that the test controls. */

import { newId } from '#base/ids'
import { AccessTokens } from '#core/auth/access-tokens'
import type { ApiKey, FoundApiKey } from '#core/auth/api-key'
import { Authenticator } from '#core/auth/authenticator'
import { LastRequests } from '#core/auth/last-requests'
import { API_KEY_PREFIX, newOpaqueKey } from '#core/auth/opaque-key'
import { newSession, type Session } from '#core/auth/session'
import { keyOfSecret } from '#core/auth/signing-keys'
import { UserCache } from '#core/auth/user-cache'
import type { ApiKeyStore, SessionStore } from '#core/store/store'
import { NO_FACTORS } from '#core/users/factors'
import { newFields } from '#core/users/fields'
import type { User } from '#core/users/user'
import { JWT_SECRET, manualClock } from './build.ts'

export const LIMITS = { lifetime: 86_400_000, idle: 3_600_000 }

type Found = Awaited<ReturnType<SessionStore['find']>>

/** An API key by its digest. */
interface StoredApiKey {
  readonly userId: string
  readonly apiKey: ApiKey
}

/** Responds at once or when the test asks for it, with the state at the request or at the response. */
class TestStore {
  readonly users = new Map<string, User>()
  /** The key of each user. */
  readonly keys = new Map<string, number>()
  readonly sessions = new Map<string, Session>()
  readonly apiKeys = new Map<string, StoredApiKey>()
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
    return this.#respond(() => this.#session(id), onStart)
  }

  findApiKey(
    digest: string,
    onStart?: () => void,
  ): FoundApiKey | undefined | Promise<FoundApiKey | undefined> {
    return this.#respond(() => this.#apiKey(digest), onStart)
  }

  #respond<Result>(read: () => Result, onStart: (() => void) | undefined): Result | Promise<Result> {
    this.lookups += 1
    if (!this.later) return read()
    let then = read()
    this.queued.push(() => {
      then = read()
      onStart?.()
    })
    return new Promise(resolve => {
      this.waiting.push(old => resolve(old ? then : read()))
    })
  }

  #session(id: string): Found {
    const session = this.sessions.get(id)
    const user = session && this.users.get(session.userId)
    return session && user && { session, user, userKey: this.keys.get(user.id) ?? 0 }
  }

  #apiKey(digest: string): FoundApiKey | undefined {
    const stored = this.apiKeys.get(digest)
    const user = stored && this.users.get(stored.userId)
    return stored && user && { apiKey: stored.apiKey, user, userKey: this.keys.get(user.id) ?? 0 }
  }
}

export interface AddedApiKey {
  readonly id: string
  readonly userId: string
  readonly digest: string
  readonly token: string
}

export interface TestCredential {
  readonly id: string
  readonly userId: string
  readonly token: string
  exists(): boolean
  revoke(): void
  /** Removes it from the store without a notification, as another instance does at first. */
  remove(): void
}

const newUser = (id: string): User => ({
  id,
  email: `${id}@example.com`,
  ...newFields({ firstName: 'version 0' }),
  emailVerified: false,
  hasPassword: true,
  disabled: false,
  factors: NO_FACTORS,
  createdAt: 0,
  updatedAt: 0,
  version: 1,
  lastRequestAt: null,
})

/** @param hotCapacity of the first level of the token cache; by default all of it. */
export const setUp = (capacity = 100_000, hotCapacity = capacity) => {
  const clock = manualClock()
  const store = new TestStore()
  const tokens = new AccessTokens(
    { current: keyOfSecret(JWT_SECRET), others: [] },
    { issuer: 'gatehouse', audiences: ['gatehouse'] },
  )
  const userCache = new UserCache()
  const lastRequests = new LastRequests({
    userCache,
    store: { recordLastRequests: async () => undefined },
    apiKeys: { recordRequests: async () => undefined },
    adminKeys: { recordRequests: async () => undefined },
    interval: 1_000,
    idle: LIMITS.idle,
    closing: 0,
    onFailure: error => {
      throw error
    },
  })
  const apiKeys: Pick<ApiKeyStore, 'find'> = { find: (digest, onStart) => store.findApiKey(digest, onStart) }
  const parts = {
    tokens,
    sessions: store,
    apiKeys,
    grants: { find: () => undefined },
    userCache,
    lastRequests,
    limits: LIMITS,
    deliverInvalidations: () => undefined,
    clock: clock.now,
  }
  const authenticator = new Authenticator({ ...parts, capacity, hotCapacity })
  authenticator.setFeedConnected(true)
  const addUser = (userId: string): void => {
    if (store.users.has(userId)) return
    store.users.set(userId, newUser(userId))
    store.keys.set(userId, store.keys.size + 1)
  }
  /** Adds a session of a user. @returns it with its token. */
  const open = (userId: string): { session: Session; token: string } => {
    addUser(userId)
    const session = newSession(userId, clock.now(), LIMITS, { method: 'password', amr: ['pwd'] })
    store.sessions.set(session.id, session)
    return { session, token: tokens.issue(session) }
  }
  /** Adds an API key of a user. @returns its id, digest, and the key itself. */
  const addApiKey = (userId: string, expiresAt: number | null = null): AddedApiKey => {
    addUser(userId)
    const { text, digest, shownPrefix } = newOpaqueKey(API_KEY_PREFIX)
    const id = newId(clock.now())
    const apiKey = {
      id,
      name: 'a key',
      prefix: shownPrefix,
      scopes: ['account:read'],
      createdAt: clock.now(),
      expiresAt,
      lastUsedAt: null,
    }
    store.apiKeys.set(digest, { userId, apiKey })
    return { id, userId, digest, token: text }
  }
  /** Changes a user like an engine: first in the store, then with a notification to the cache. */
  const change = (userId: string, changes: Partial<User>): void => {
    const user = store.users.get(userId)
    if (user !== undefined) store.users.set(userId, { ...user, ...changes })
    authenticator.invalidate(userId)
  }
  const revoke = (session: Session): void => {
    store.sessions.delete(session.id)
    authenticator.invalidate(session.userId)
  }
  const revokeApiKey = ({ digest, userId }: AddedApiKey): void => {
    store.apiKeys.delete(digest)
    authenticator.invalidate(userId)
  }
  /** Adds a session or an API key, for tests that treat both alike. */
  const addCredential = (kind: 'session' | 'apiKey', userId: string): TestCredential => {
    if (kind === 'session') {
      const { session, token } = open(userId)
      return {
        id: session.id,
        userId,
        token,
        exists: () => store.sessions.has(session.id),
        revoke: () => revoke(session),
        remove: () => void store.sessions.delete(session.id),
      }
    }
    const added = addApiKey(userId)
    return {
      ...added,
      exists: () => store.apiKeys.has(added.digest),
      revoke: () => revokeApiKey(added),
      remove: () => void store.apiKeys.delete(added.digest),
    }
  }
  return {
    clock,
    store,
    authenticator,
    userCache,
    lastRequests,
    open,
    addApiKey,
    addCredential,
    change,
    revoke,
    revokeApiKey,
  }
}

/** Runs everything that is ready to run. */
export const settle = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
