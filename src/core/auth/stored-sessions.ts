/** Sessions, and the proofs of identity in them. PostgreSQL opens and finds one with a single statement: `postgres-credentials.ts`. */

import {
  firstRow,
  type Query,
  query,
  rows,
  type Statement,
  type Steps,
  USER_KEY,
} from '#storage/operations/operation'
import { parameters, valuesOf } from '#storage/operations/parameters'
import {
  endsAccess,
  invalidates,
  invalidatesNothing,
  refusedFor,
  type Write,
} from '#storage/operations/write'
import {
  amrAfterProof,
  amrAfterRemoval,
  isMultiFactor,
  type MethodAmr,
  type ProvedWith,
  type RemovedProofs,
} from '../accounts/sign-in-methods.ts'
import {
  addPendingChange,
  deleteEndedTokens,
  endPendingChanges,
  type PendingChange,
} from '../accounts/stored-pending-changes.ts'
import type { AuditEvent } from '../audit-log/event.ts'
import { recordStatement } from '../audit-log/stored-events.ts'
import { type Factor, needsCode } from '../users/factors.ts'
import { endWithSessions, type OwnedTables } from '../users/owned-rows.ts'
import { refusalOf, type SessionRefusal, type UserRefusal, type UserState } from '../users/refusals.ts'
import { lockUser } from '../users/user-locks.ts'
import { factorsColumn, toFactors } from '../users/user-rows.ts'
import type { PresentedAdminKey } from './admin-key.ts'
import type { Session } from './session.ts'
import {
  amrColumn,
  SESSION_COLUMNS,
  type SessionRow,
  sessionColumns,
  toAmr,
  toSession,
} from './session-rows.ts'
import { endImpersonationsBy } from './stored-keys.ts'

/** A session that makes a change after a proof of identity. The proof must still hold in the transaction of the change. */
export interface ProvedSession {
  readonly id: string
  readonly needsCode: boolean
  /** When the session had its proof, as read: milliseconds since the epoch. By default the proof is of the request itself. */
  readonly authenticatedAt?: number
}

/** The session that makes a change: its id, if that needs no proof of identity. */
export type ActingSession = string | ProvedSession

export const sessionIdOf = (session: ActingSession): string =>
  typeof session === 'string' ? session : session.id

/** What a sign-in has verified of a user. A session is opened only if it is still true. */
export interface VerifiedState {
  readonly passwordHash: string
  readonly factors: readonly Factor[]
}

/** The columns of `UserState` for a {@link VerifiedState} in `$2` and `$3`; `$2` is `null` for none. */
export const OPENING_STATE = `disabled, CASE WHEN CAST($2 AS text) IS NULL
  OR password_hash = $2 AND factors IS NOT DISTINCT FROM $3 THEN 1 ELSE 0 END AS verified`

/** The parameters of {@link OPENING_STATE}, behind the user's id. */
export const openingValues = ({ userId }: Session, verified: VerifiedState | null): readonly unknown[] => [
  userId,
  verified?.passwordHash ?? null,
  verified && factorsColumn(verified.factors),
]

export interface RevokeAllOptions {
  readonly exceptId: string | null
  /** Whether the user must be enabled: a disabled user's own requests change nothing. */
  readonly onlyEnabled: boolean
}

export const ADD_SESSION = `INSERT INTO sessions (user_key, ${SESSION_COLUMNS.join(', ')})
  SELECT key, ${parameters(SESSION_COLUMNS, 2)} FROM users WHERE id = $1`

/** Opens a session in an operation that has locked its user. */
export const addSessionStatement = (session: Session): Statement => ({
  name: 'add-session',
  text: ADD_SESSION,
  values: [session.userId, ...valuesOf(SESSION_COLUMNS, sessionColumns(session))],
})

/** Deletes sessions, except `exceptId`. Locks them in the order in which last requests are written, so that the two cannot deadlock. */
const revokeSessionsStatement = (userId: string, exceptId: string | null): Statement => ({
  text: ({ forUpdate }) => `WITH revoked AS (
      SELECT id FROM sessions
      WHERE user_key = ${USER_KEY} AND id IS DISTINCT FROM CAST($2 AS text)
      ORDER BY id ${forUpdate}
    )
    DELETE FROM sessions WHERE id IN (SELECT id FROM revoked) RETURNING id, amr`,
  values: [userId, exceptId],
})

/** Afterwards the sessions, except `exceptId`, have no proof of identity. Locks in the same order as a revocation. */
const forgetProofsStatement = (userId: string, exceptId: string | null): Statement => ({
  text: ({ forNoKeyUpdate }) => `WITH own AS (
      SELECT id FROM sessions
      WHERE user_key = ${USER_KEY} AND id IS DISTINCT FROM CAST($2 AS text)
      ORDER BY id ${forNoKeyUpdate}
    )
    UPDATE sessions SET authenticated_at = 0 WHERE id IN (SELECT id FROM own)`,
  values: [userId, exceptId],
})

/** Takes what a user has removed from the `amr` of their sessions. Locks in the same order as a revocation. */
export function* lowerAmr(
  userId: string,
  removed: RemovedProofs,
  methods: readonly MethodAmr[],
): Steps<void> {
  const sessions = yield* rows<{ id: string; method: string | null; amr: string }>({
    text: ({ forNoKeyUpdate }) => `SELECT id, method, amr FROM sessions
      WHERE user_key = ${USER_KEY} AND amr IS NOT NULL ORDER BY id ${forNoKeyUpdate}`,
    values: [userId],
  })
  const changed = sessions.flatMap(({ id, method, amr }) => {
    const left = amrColumn(amrAfterRemoval({ method, amr: toAmr(amr) }, removed, methods))
    return left === amr ? [] : [{ id, amr: left }]
  })
  if (changed.length === 0) return
  yield {
    text: ({ jsonRows }) => `UPDATE sessions SET amr = records.amr
      FROM ${jsonRows('$1', { id: 'text', amr: 'text' })} WHERE sessions.id = records.id`,
    values: [JSON.stringify(changed)],
  }
}

/**
 * Ends the proofs of identity in a user's other sessions, and their pending changes. Every change of the ways to sign in calls it.
 * @param exceptId the acting session, which keeps its own; `null` for none. @param endsSessions whether the other sessions end too.
 */
export function* endProofs(userId: string, exceptId: string | null, endsSessions = false): Steps<void> {
  yield endsSessions ? revokeSessionsStatement(userId, exceptId) : forgetProofsStatement(userId, exceptId)
  yield* endPendingChanges(userId, exceptId)
}

/** Forgets a user's known networks at a new password: who signed in before may not be the owner. The next session adds its own. */
export const forgetNetworksStatement = (userId: string): Statement => ({
  text: `DELETE FROM known_networks WHERE user_key = ${USER_KEY}`,
  values: [userId],
})

/**
 * Ends every session of a user, who must be locked. The caller ends the changes of the e-mail.
 * @returns the sessions, so that the caller sees without another round trip whether its own still existed, and its `amr`.
 */
export function* revokeAllSessions(
  userId: string,
): Steps<readonly { readonly id: string; readonly amr: readonly string[] }[]> {
  const revoked = yield* rows<{ id: string; amr: string | null }>(revokeSessionsStatement(userId, null))
  return revoked.map(({ id, amr }) => ({ id, amr: toAmr(amr) }))
}

/**
 * Ends what a user has impersonated, after sessions were revoked. Administrators have sessions with two factors: no other user pays for the
 * statement. @returns the ids of the impersonated users.
 */
export function* endImpersonationsOf(
  userId: string,
  revoked: readonly { readonly amr: readonly string[] }[],
): Steps<readonly string[]> {
  return revoked.some(({ amr }) => isMultiFactor(amr)) ? yield* endImpersonationsBy(userId) : []
}

/** Locks the user first, like every write that revokes sessions. */
const revokeStatement = (id: string, userId: string): Statement => ({
  text: ({ forShare, inSharedTurn }) => `DELETE FROM sessions WHERE id = $1 AND user_key = (
      SELECT key FROM users WHERE id = $2 AND disabled = 0 AND ${inSharedTurn('$2')} ${forShare}
    ) RETURNING amr`,
  values: [id, userId],
})

const recordAuthenticationStatement = (
  id: string,
  userId: string,
  at: number,
  amr: readonly string[],
): Statement => ({
  text: `UPDATE sessions SET authenticated_at = CAST($3 AS bigint), amr = CAST($4 AS text)
    WHERE id = $1 AND user_key = (SELECT key FROM users WHERE id = $2)`,
  values: [id, userId, at, amrColumn(amr)],
})

/**
 * Whether a session of the user, who must be locked, still exists. For a {@link ProvedSession} also whether its proof has not ended, and
 * another one would need the same.
 */
export function* sessionExists(session: ActingSession, userId: string): Steps<boolean> {
  const found = yield* firstRow<{ factors: string | null; authenticatedAt: number }>({
    text: `SELECT users.factors, coalesce(authenticated_at, sessions.created_at) AS "authenticatedAt"
      FROM sessions JOIN users ON users.key = user_key WHERE sessions.id = $1 AND users.id = $2`,
    values: [sessionIdOf(session), userId],
  })
  if (found === undefined) return false
  if (typeof session === 'string') return true
  const { needsCode: neededCode, authenticatedAt = 0 } = session
  return (
    needsCode({ factors: toFactors(found.factors) }) === neededCode &&
    found.authenticatedAt >= authenticatedAt
  )
}

/** Locks a user who makes a change in a session. @returns why the change is refused; `null` if it is not. */
export function* lockForSession(userId: string, session: ActingSession): Steps<SessionRefusal | null> {
  const refused = refusalOf(yield* lockUser(userId), { onlyEnabled: true })
  if (refused !== null) return refused
  return (yield* sessionExists(session, userId)) ? null : 'sessionNotFound'
}

export interface ChangeHolder {
  readonly userId: string
  readonly session: ProvedSession
}

/**
 * Locks a user, and begins a change that another request completes with {@link takePendingChange}. It ends with the proof of identity.
 * @returns why it is refused; `null` if it is not.
 */
export function* beginChange(
  change: PendingChange,
  { userId, session }: ChangeHolder,
): Steps<SessionRefusal | null> {
  const refused = yield* lockForSession(userId, session)
  if (refused === null) yield addPendingChange(change, userId, session)
  return refused
}

export const sessionOperations = (tables: Pick<OwnedTables, 'endWithSessions'>) => ({
  /** Opens a session if the user is enabled and has the verified state. @param verified `null` for a session that no password opens. */
  *open(
    session: Session,
    verified: VerifiedState | null,
    event: AuditEvent,
  ): Steps<Write<'opened' | UserRefusal>> {
    const state = yield* firstRow<UserState>({
      text: ({ inSharedTurn, forShare }) =>
        `SELECT ${OPENING_STATE} FROM users WHERE id = $1 AND ${inSharedTurn('$1')} ${forShare}`,
      values: openingValues(session, verified),
    })
    const refused = refusalOf(state, { onlyEnabled: true })
    if (refused !== null) return refusedFor(session.userId, refused)
    yield addSessionStatement(session)
    yield recordStatement(event)
    return invalidatesNothing('opened')
  },

  /** Revokes one session of the event's user, who must be enabled. */
  *revoke(id: string, event: AuditEvent): Steps<Write<'revoked' | 'sessionNotFound' | UserRefusal>> {
    const { userId } = event
    const revoked = yield* firstRow<{ amr: string | null }>(revokeStatement(id, userId))
    if (revoked === undefined) {
      const refused = refusalOf(yield* lockUser(userId, null, 'shared'), { onlyEnabled: true })
      // A request that has revoked it may still wait for other processes.
      return refused === null ? endsAccess(userId, 'sessionNotFound') : refusedFor(userId, refused)
    }
    yield deleteEndedTokens(userId)
    yield recordStatement(event)
    const impersonated = yield* endImpersonationsOf(userId, [{ amr: toAmr(revoked.amr) }])
    return endsAccess([userId, ...impersonated], 'revoked')
  },

  /** Revokes every session of the event's user. Records no event if there is none to revoke. */
  *revokeAll(
    event: AuditEvent,
    { exceptId, onlyEnabled }: RevokeAllOptions,
  ): Steps<Write<'revoked' | UserRefusal>> {
    const { userId } = event
    // Opening a session takes this lock too: a session is either open by now, or opened after this operation.
    const refused = refusalOf(yield* lockUser(userId), { onlyEnabled })
    if (refused !== null) return refusedFor(userId, refused)
    const revoked = yield* rows<{ amr: string | null }>(revokeSessionsStatement(userId, exceptId))
    // Also without another session: one that has expired may have begun a change of the e-mail.
    yield* endPendingChanges(userId, exceptId)
    // No event where no session ended: nothing limits these requests, because they must always work.
    if (revoked.length > 0) yield recordStatement(event)
    if (exceptId === null) yield* endWithSessions(tables.endWithSessions, event)
    // Also where none ended: another request may have ended them, and still wait for other processes.
    const impersonated = yield* endImpersonationsOf(
      userId,
      revoked.map(({ amr }) => ({ amr: toAmr(amr) })),
    )
    return endsAccess([userId, ...impersonated], 'revoked')
  },

  /**
   * For an administrator who has just opened an impersonated session, which a simultaneous end of the own one, of the role or of a factor may
   * not have seen. @returns whether there was one: the impersonated sessions have ended then.
   */
  *endImpersonationsUnless(
    userId: string,
    { sessionId, version }: NonNullable<PresentedAdminKey['administrator']>,
  ): Steps<Write<boolean>> {
    // What ends one of these locks the user first.
    yield* lockUser(userId)
    const found = yield* firstRow({
      text: `SELECT sessions.id FROM sessions JOIN users ON users.key = user_key
        WHERE sessions.id = $1 AND users.id = $2 AND users.version = $3 AND users.disabled = 0`,
      values: [sessionId, userId, version],
    })
    if (found !== undefined) return invalidatesNothing(false)
    return endsAccess(yield* endImpersonationsBy(userId), true)
  },

  /** Records a proof of identity of the event's user, who must be enabled. An impersonated session is not found. */
  *recordAuthentication(
    session: ProvedSession,
    proved: ProvedWith,
    event: AuditEvent,
  ): Steps<Write<'recorded' | SessionRefusal>> {
    const { userId, at } = event
    const refused = yield* lockForSession(userId, session)
    if (refused !== null) return refusedFor(userId, refused)
    const { id } = session
    const found = yield* firstRow<{ amr: string | null }>({
      text: 'SELECT amr FROM sessions WHERE id = $1 AND impersonated_by IS NULL',
      values: [id],
    })
    if (found === undefined) return refusedFor(userId, 'sessionNotFound')
    // What the session has now: a factor may have been removed since the request began.
    yield recordAuthenticationStatement(id, userId, at, amrAfterProof(toAmr(found.amr), proved))
    yield recordStatement(event)
    return invalidates(userId, 'recorded')
  },
})

const KNOWN_NETWORK = 'SELECT digest FROM known_networks WHERE digest = $1 AND signed_in_at > $2'
const SESSIONS = `SELECT ${SESSION_COLUMNS.join(', ')} FROM sessions
  WHERE user_key = ${USER_KEY} AND expires_at > $2 AND last_request_at > $3
  ORDER BY created_at DESC, id DESC LIMIT $4`
const LAST_SIGN_INS = `SELECT method, max(created_at) AS at FROM sessions
  WHERE user_key = ${USER_KEY} AND method IS NOT NULL GROUP BY method`

export interface LastSignIn {
  readonly method: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

export const sessionReads = {
  /** Whether the user has signed in from a network. @param digest `networkDigest`. @param since milliseconds since the epoch. */
  isKnownNetwork: (digest: string, since: number): Query<boolean> =>
    query(
      { name: 'known-network', text: KNOWN_NETWORK, values: [digest, since] },
      (found: readonly unknown[]) => found.length > 0,
    ),

  /** When the newest of the existing sessions was opened, by method. */
  listLastSignIns: (userId: string): Query<readonly LastSignIn[]> =>
    query(
      { name: 'last-sign-ins', text: LAST_SIGN_INS, values: [userId] },
      (found: readonly LastSignIn[]) => found,
    ),

  /** The newest sessions of a user that are not expired, and not idle since `idleSince`, newest first. */
  list: (userId: string, now: number, idleSince: number, limit: number): Query<readonly Session[]> =>
    query(
      { name: 'sessions', text: SESSIONS, values: [userId, now, idleSince, limit] },
      (found: readonly SessionRow[]) => found.map(row => toSession(row, userId)),
    ),
}
