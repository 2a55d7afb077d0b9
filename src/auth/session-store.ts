import type { AuditEvent } from '../audit-log/event.ts'
import type { User } from '../users/user.ts'
import type { MaybePromise, UserRefusal } from '../users/user-store.ts'
import type { Session } from './session.ts'

/**
 * What identification and sessions need of a store. Every write is on disk before its promise resolves; the event
 * that it is given is kept in the same transaction, if there was a change.
 */
export interface SessionStore {
  /**
   * Opens a session if, at that very timestamp, the user is enabled and the password is still the one that was verified.
   * @param verifiedHash `null` for a session that no password opens.
   */
  open(session: Session, verifiedHash: string | null, event: AuditEvent): Promise<'opened' | UserRefusal>
  /** Ends one session of the event's user, who is enabled. */
  end(id: string, event: AuditEvent): Promise<'ended' | 'sessionNotFound' | UserRefusal>
  /**
   * Ends every session of the event's user, but for one.
   * @param onlyEnabled what users do themselves ends with their being disabled.
   */
  endAll(exceptId: string | null, event: AuditEvent, onlyEnabled: boolean): Promise<'ended' | UserRefusal>
  /** The newest sessions of a user that have not reached their absolute end or been idle since `idleSince`, newest first. */
  list(userId: string, now: number, idleSince: number, limit: number): MaybePromise<readonly Session[]>
  /**
   * Whether what is found may still be used is the caller's to judge.
   * @param onAsk called when the store is really asked, which may be long after: what changed before then is in the answer.
   */
  find(id: string, onAsk?: () => void): MaybePromise<FoundSession | undefined>
}

/** A session with its user, as the store has them. */
export interface FoundSession {
  readonly session: Session
  readonly user: User
  /** The store's own number of the user, never given twice: what it notes last requests by. */
  readonly userKey: number
}
