/** The store of sessions. */
import type { AuditEvent } from '../audit-log/event.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import type { Factor } from '../users/factors.ts'
import type { User } from '../users/user.ts'
import type { UserRefusal } from '../users/user-store.ts'
import type { Session } from './session.ts'

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

export interface RevokeAllOptions {
  /** The id of a session that stays; `null` for none. */
  readonly exceptId: string | null
  /** Whether the user must be enabled: a disabled user's own requests change nothing. */
  readonly onlyEnabled: boolean
}

/**
 * What authentication and sessions need of a store. Every write is on disk before its promise resolves. The store records the
 * given event in the same transaction, if anything changed.
 */
export interface SessionStore {
  /**
   * Opens a session if, at the time of the write, the user is enabled and has the verified state.
   * @param verified `null` for a session that no password opens.
   */
  open(session: Session, verified: VerifiedState | null, event: AuditEvent): Promise<'opened' | UserRefusal>
  /** Revokes one session of the event's user, who must be enabled. */
  revoke(id: string, event: AuditEvent): Promise<'revoked' | 'sessionNotFound' | UserRefusal>
  /** Revokes every session of the event's user. Records no event if there is none to revoke. */
  revokeAll(event: AuditEvent, options: RevokeAllOptions): Promise<'revoked' | UserRefusal>
  /**
   * Notes that the event's user, who must be enabled, proved their identity in a session when the event happened. An impersonated
   * session is not found.
   */
  noteAuthentication(id: string, event: AuditEvent): Promise<'noted' | 'sessionNotFound' | UserRefusal>
  /**
   * Whether the user has signed in from a network. An open session is not needed.
   * @param digest `networkDigest` of the user's id and the network.
   * @param since the earliest time of the sign-in.
   */
  isKnownNetwork(digest: string, since: number): MaybePromise<boolean>
  /** The newest sessions of a user that have neither reached their absolute end nor been idle since `idleSince`, newest first. */
  list(userId: string, now: number, idleSince: number, limit: number): MaybePromise<readonly Session[]>
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
