/**
 * The stores of the core, as use cases see them: types only. Their functions follow from the operations (`operations/operations.ts`) and
 * reads (`operations/reads.ts`), except for those declared here, which each engine has by hand because they are hot or read in slices.
 *
 * A write is on disk before its promise resolves. If it changes something, its event is stored in the same transaction.
 */

import type { MaybePromise } from '#base/maybe-promise'
import type { StoreOf } from '#storage/operations/operation'
import type { EmailToken } from '../accounts/email-token.ts'
import type { AuditEvent } from '../audit-log/event.ts'
import type { EventQuery, FollowPage, FollowQuery, LogPosition } from '../audit-log/listing.ts'
import type { AdminKey } from '../auth/admin-key.ts'
import type { FoundApiKey } from '../auth/api-key.ts'
import type { Session } from '../auth/session.ts'
import type { Factor } from '../users/factors.ts'
import type { Position, SignInTables, UserFilter, UserQuery } from '../users/listing.ts'
import type { OwnedRow } from '../users/owned-rows.ts'
import type { UserRefusal } from '../users/refusals.ts'
import type { NewUser, User, UserWithHash } from '../users/user.ts'
import type { CoreOperations } from './operations.ts'
import type { CoreReads } from './reads.ts'

export type { AccountProof } from '../accounts/stored-email-tokens.ts'
export type { KnownMethods, SignInRow } from '../accounts/stored-sign-in-methods.ts'
export type { SignedIn } from '../accounts/stored-sign-ins.ts'
export type { RevokeAllOptions } from '../auth/stored-sessions.ts'
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

/** Stored with a new account, in the same transaction. */
export interface AccountExtras {
  readonly session?: Session
  readonly emailToken?: EmailToken
}

/** The store of sign-ups and password changes. */
export interface AccountStore extends Derived<'accounts'> {
  /** @returns false when the e-mail is taken. */
  addUser(user: NewUser, event: AuditEvent, extras: AccountExtras): Promise<boolean>
}

/** A session and its user, as stored. */
export interface FoundSession {
  readonly session: Session
  readonly user: User
  /** The number that the store assigned to the user and never reuses. Last requests are written by this number. */
  readonly userKey: number
}

/** What a sign-in has verified of a user. A session is opened only if it is still true. */
export interface VerifiedState {
  /** The hash of the password. */
  readonly passwordHash: string
  readonly factors: readonly Factor[]
}

export interface SessionStore extends Derived<'sessions'> {
  /**
   * Opens a session if, at the time of the write, the user is enabled and has the verified state.
   * @param verified `null` for a session that no password opens.
   */
  open(session: Session, verified: VerifiedState | null, event: AuditEvent): Promise<'opened' | UserRefusal>
  /**
   * Expired sessions are found too: the caller checks expiry.
   * @param onStart called when the query starts, which may be long after the call. The result includes every change that was
   * committed before.
   */
  find(id: string, onStart?: () => void): MaybePromise<FoundSession | undefined>
  /**
   * Sessions in the order in which they were opened, newest first; also expired ones and those of disabled users.
   * @param before the last id of the previous page; `null` for the first page.
   */
  findNewest(before: string | null, limit: number): MaybePromise<readonly FoundSession[]>
}

/** What authentication needs of API keys. The feature has a store of its own. */
export interface ApiKeyStore extends Derived<'apiKeys'> {
  /**
   * Expired keys are found too: the caller checks expiry.
   * @param digest see `keyDigest`.
   * @param onStart as in {@link SessionStore.find}.
   */
  find(digest: string, onStart?: () => void): MaybePromise<FoundApiKey | undefined>
}

/** What authentication needs of admin keys. */
export interface AdminKeyStore extends Derived<'adminKeys'> {
  /** As {@link ApiKeyStore.find}. */
  find(digest: string, onStart?: () => void): MaybePromise<AdminKey | undefined>
}

export type EmailTokenStore = Derived<'emailTokens'>

export type Imported =
  | { readonly status: 'created' }
  /** The e-mail already has a user, with this id. Nothing changed. */
  | { readonly status: 'exists'; readonly id: string }
  /** The id belongs to a user with another e-mail. */
  | { readonly status: 'idTaken' }
  /** Other rows have the values of unique columns. `rows` are the indexes of the rows that conflict, among those of the user. */
  | { readonly status: 'rowsTaken'; readonly rows: readonly number[] }

/** A row that is added with its user. */
export interface ImportedRow extends OwnedRow {
  /** The index of the user who owns it. */
  readonly user: number
}

export interface BulkUserStore {
  /**
   * Adds the users whose id and e-mail are free. Of two simultaneous imports or sign-ups with one e-mail, one succeeds.
   * @param events one for each user, in the same order; stored for those who are added.
   * @param rows stored in the same transaction, for those who are added. A user whose rows have a value of a unique column
   * (`FeatureTable.unique`) that another row has is not added. The rows of one user must have different values.
   * @returns one result for each user, in the same order, when all are on disk.
   */
  importUsers(
    users: readonly UserWithHash[],
    events: readonly AuditEvent[],
    rows: readonly ImportedRow[],
  ): Promise<readonly Imported[]>
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
  /** In the order of visibility. */
  follow(query: FollowQuery): MaybePromise<FollowPage>
  /** The position of the last visible event. */
  end(): MaybePromise<LogPosition>
}

/** The reads of the audit log. */
export type EventLog = Omit<EventStore, keyof CoreOperations['events']>

/** Timestamps in milliseconds since the epoch. */
export interface ExpiredSessions {
  /** Removes sessions whose absolute end is at or before this time. */
  readonly endedBy: number
  /** Removes sessions whose last request is at or before this time. */
  readonly idleSince: number
}

/** Each call removes one slice of at most `limit` rows. Simultaneous calls, also of several instances, are safe. */
export interface CleanUpStore extends Derived<'cleanUp'> {
  /**
   * Reads the next sessions in the order of their ids: an index of their ends would cost every request. Sessions that are
   * being written are skipped until the next pass.
   * @param after the last id of the previous slice, `''` at the beginning.
   * @returns the last id of this slice, `''` after the last session.
   */
  removeSessions(expired: ExpiredSessions, after: string, limit: number): Promise<string>
  /**
   * Prepares the store for events of the coming month, and drops those of months that ended longer ago than `kept`, in milliseconds.
   * @returns the timestamp before which rows of events are to be removed.
   */
  rotateEvents(now: number, kept: number): Promise<number>
  /** Like {@link removeSessions}, for the counters of rate limits. Does nothing where they are not in a table. */
  removeRateLimits(expiredBy: number, after: string, limit: number): Promise<string>
}
