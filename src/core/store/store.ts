/**
 * The store, as use cases see it: types only. Its functions follow from the operations and reads of the subjects (`operations.ts`), except
 * for those declared here, which each engine has by hand because they are hot or read in slices.
 *
 * A write is on disk before its promise resolves. If it changes something, its event is stored in the same transaction.
 */

import type { MaybePromise } from '#base/maybe-promise'
import type { Engine } from '#storage/engine'
import type { StoreOf } from '#storage/operations/operation'
import type { AuditEvent } from '../audit-log/event.ts'
import type { EventQuery, FollowPage, FollowQuery, LogPosition } from '../audit-log/listing.ts'
import type { AdminKey } from '../auth/admin-key.ts'
import type { FoundApiKey } from '../auth/api-key.ts'
import type { FoundClient, FoundGrant } from '../auth/client-tokens.ts'
import type { LastRequestStore } from '../auth/last-requests.ts'
import type { Session } from '../auth/session.ts'
import type { Position, SignInTables, UserFilter, UserQuery } from '../users/listing.ts'
import type { User, UserWithHash } from '../users/user.ts'
import type { CoreOperations, CoreReads } from './operations.ts'

export type { AccountProof } from '../accounts/stored-email-tokens.ts'
export type { Imported, ImportedRow } from '../accounts/stored-imports.ts'
export type { KnownMethods, SignInRow } from '../accounts/stored-sign-in-methods.ts'
export type { SignedIn } from '../accounts/stored-sign-ins.ts'
export type { ExpiredSessions } from '../auth/stored-session-removal.ts'
export type { RevokeAllOptions, VerifiedState } from '../auth/stored-sessions.ts'
export type { OwnedRow } from '../users/owned-rows.ts'
export type { SessionRefusal, UserRefusal } from '../users/refusals.ts'
export type { OwnFactorChange } from '../users/stored-factors.ts'
export type { RemovalRefused, Removed } from '../users/stored-removals.ts'

/** What follows from the operations and reads of a store. */
export type Derived<Name extends keyof CoreOperations> = StoreOf<CoreOperations[Name], CoreReads[Name]>

export interface UserStore extends Derived<'users'> {
  list(query: UserQuery): MaybePromise<readonly User[]>
  /** Takes time in proportion to the number of users: only for `count=true`. */
  count(filter: UserFilter): MaybePromise<number>
  /** About the number of users, in milliseconds however many there are. Exact for a few. */
  estimate(filter: UserFilter): MaybePromise<number>
}

/** The store of sign-ups, sign-ins and password changes. */
export type AccountStore = Derived<'accounts'>

/** A session and its user, as stored. */
export interface FoundSession {
  readonly session: Session
  readonly user: User
  /** The number that the store assigned to the user and never reuses. Last requests are written by this number. */
  readonly userKey: number
}

export interface SessionStore extends Derived<'sessions'> {
  /**
   * Expired sessions are found too: the caller checks expiry.
   * @param onStart called when the query starts, which may be long after the call. The result includes every change that was
   * committed before.
   */
  find(id: string, onStart?: () => void): MaybePromise<FoundSession | undefined>
}

/** What authentication needs of API keys. The feature has a store of its own. */
export interface ApiKeyStore extends Derived<'apiKeys'> {
  /**
   * Finds expired keys too: the caller checks expiry.
   * @param digest of the key, by `keyDigest`.
   * @param onStart called when the query starts. The result includes every change that was committed before.
   */
  find(digest: string, onStart?: () => void): MaybePromise<FoundApiKey | undefined>
}

/** What authentication needs of admin keys. */
export interface AdminKeyStore extends Derived<'adminKeys'> {
  /**
   * Finds expired keys too: the caller checks expiry.
   * @param digest of the key, by `keyDigest`.
   * @param onStart called when the query starts. The result includes every change that was committed before.
   */
  find(digest: string, onStart?: () => void): MaybePromise<AdminKey | undefined>
}

/** What authentication needs of the grants of users to clients. */
export interface GrantStore {
  /**
   * Finds expired grants too: the caller checks expiry. `undefined` if the grant has ended, or the token was revoked.
   * @param onStart called when the query starts. The result includes every change that was committed before.
   */
  find(id: string, tokenId: string, onStart?: () => void): MaybePromise<FoundGrant | undefined>
}

/** What authentication needs of clients, for tokens of their own. */
export interface ClientStore {
  /**
   * `undefined` if there is no such client, or the token was revoked.
   * @param onStart called when the query starts. The result includes every change that was committed before.
   */
  find(id: string, tokenId: string, onStart?: () => void): MaybePromise<FoundClient | undefined>
}

export type EmailTokenStore = Derived<'emailTokens'>

export interface BulkUserStore extends Derived<'bulkUsers'> {
  /**
   * The next users in order of creation: few enough not to delay other requests. Empty at the end.
   * @param signInTables for `User.featureMethods`.
   */
  exportUsers(after: Position | null, signInTables?: SignInTables): MaybePromise<readonly UserWithHash[]>
}

export interface EventStore extends Derived<'events'> {
  /** Names the store's kind of positions. Positions of another kind are invalid in this store. */
  readonly positionKind: string
  /** Newest first. */
  list(query: EventQuery): MaybePromise<readonly AuditEvent<string | null>[]>
  /** A page of events in the order in which they became visible. */
  follow(query: FollowQuery): MaybePromise<FollowPage>
  /** The position of the last visible event. */
  end(): MaybePromise<LogPosition>
}

/** The reads of the audit log. */
export type EventLog = Omit<EventStore, keyof CoreOperations['events']>

/** Each call removes one slice of at most `limit` rows. Simultaneous calls, also of several instances, are safe. */
export interface CleanUpStore extends Derived<'cleanUp'> {
  /**
   * Prepares the store for events of the coming month, and drops those of months that ended longer ago than `kept`, in milliseconds.
   * @returns the timestamp before which rows of events are to be removed.
   */
  rotateEvents(now: number, kept: number): Promise<number>
  /**
   * Removes expired counters of rate limits. Does nothing where they are not in a table.
   * @param after the last key of the previous slice, `''` at the beginning.
   * @returns the last key of this slice, `''` after the last one.
   */
  removeRateLimits(expiredBy: number, after: string, limit: number): Promise<string>
}

/** What every engine implements (docs/design.md, "Storage"). One suite of tests, `test/storage`, runs against all of them. */
export interface Storage
  extends Pick<
    Engine,
    'openRateLimit' | 'subscribe' | 'deliverInvalidations' | 'ping' | 'close' | 'statistics'
  > {
  readonly users: UserStore
  readonly accounts: AccountStore
  readonly sessions: SessionStore
  readonly apiKeys: ApiKeyStore
  readonly adminKeys: AdminKeyStore
  readonly grants: GrantStore
  readonly clients: ClientStore
  readonly emailTokens: EmailTokenStore
  readonly lastRequests: LastRequestStore
  readonly events: EventStore
  /** By the name of the feature: its `FeatureStore`. */
  readonly features: Readonly<Record<string, object>>
  readonly bulkUsers: BulkUserStore
  readonly cleanUp: CleanUpStore
}
