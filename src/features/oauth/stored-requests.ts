/** Authorization requests in the store: pending, then a code, then used. The writer thread of SQLite imports this module. */
import type { AuditEvent } from '#core/audit-log/event'
import { refusalOf } from '#core/users/refusals'
import { lockUser } from '#core/users/user-locks'
import { firstRow, type Query, query, type Steps } from '#storage/operations/operation'
import { endsAccess, invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import type { AuthorizationRequest } from './authorization-request.ts'
import type { NewGrant } from './grant.ts'
import { addGrant, isSessionAlive } from './stored-grants.ts'
import type { RequestsTable } from './stored-rows.ts'

/** What a user has decided. Times are milliseconds since the epoch. */
export interface Decision {
  readonly scopes: readonly string[]
  /** The id of the organization that the access is limited to; `null`: none. */
  readonly organization: string | null
  readonly sessionId: string
  readonly authenticatedAt: number
  /** How the session was authenticated, see `Session.amr`. */
  readonly amr: readonly string[]
}

export interface StoredRequest {
  readonly state: 'pending' | 'code' | 'used'
  readonly request: AuthorizationRequest
  readonly userId: string | null
  readonly decision: Decision | null
  readonly grantId: string | null
  readonly expiresAt: number
}

function* addRequest(id: string, request: AuthorizationRequest, expiresAt: number): Steps<Write<void>> {
  yield {
    text: `INSERT INTO oauth_requests (id, client_id, parameters, state, code_digest, user_id, decision, grant_id, expires_at)
      VALUES ($1, $2, $3, 'pending', '', NULL, NULL, NULL, $4)`,
    values: [id, request.clientId, JSON.stringify(request), expiresAt],
  }
  return invalidatesNothing(undefined)
}

/** Makes a pending request a code. @returns whether it was pending: of two decisions at once, one counts. */
function* allowRequest(
  id: string,
  userId: string,
  codeDigest: string,
  decision: Decision,
  expiresAt: number,
  now: number,
): Steps<Write<boolean>> {
  const allowed = yield* firstRow({
    text: `UPDATE oauth_requests SET state = 'code', code_digest = $2, user_id = $3, decision = $4, expires_at = $5
      WHERE id = $1 AND state = 'pending' AND expires_at > $6 RETURNING id`,
    values: [id, codeDigest, userId, JSON.stringify(decision), expiresAt, now],
  })
  return invalidatesNothing(allowed !== undefined)
}

/** @returns whether it was pending. */
function* denyRequest(id: string): Steps<Write<boolean>> {
  const denied = yield* firstRow({
    text: "DELETE FROM oauth_requests WHERE id = $1 AND state = 'pending' RETURNING id",
    values: [id],
  })
  return invalidatesNothing(denied !== undefined)
}

/**
 * Redeems a code for a grant of the event's user: of many requests at once, one.
 * @param kept until when the row says that the code was used.
 * @returns `ended`: the user or the session may not have it any more.
 */
function* redeemCode(
  codeDigest: string,
  grant: NewGrant,
  decision: Decision,
  sessionIdle: number,
  kept: number,
  event: AuditEvent,
): Steps<Write<'redeemed' | 'used' | 'ended'>> {
  const { userId, at: now } = event
  if (refusalOf(yield* lockUser(userId), { onlyEnabled: true }) !== null) return refusedFor(userId, 'ended')
  // Also for a grant that outlives the session: the user who ends it ends what was begun in it.
  if (!(yield* isSessionAlive(decision.sessionId, now, now - sessionIdle))) return refusedFor(userId, 'ended')
  const used = yield* firstRow({
    text: `UPDATE oauth_requests SET state = 'used', grant_id = $2, expires_at = $3
      WHERE code_digest = $1 AND state = 'code' AND expires_at > $4 RETURNING id`,
    values: [codeDigest, grant.id, kept, now],
  })
  if (used === undefined) return refusedFor(userId, 'used')
  const replaced = yield* addGrant(grant, event)
  return replaced.length > 0 ? endsAccess(userId, 'redeemed') : invalidatesNothing('redeemed')
}

type RequestRow = Pick<
  RequestsTable,
  'parameters' | 'state' | 'user_id' | 'decision' | 'grant_id' | 'expires_at'
>

const COLUMNS = 'parameters, state, user_id, decision, grant_id, expires_at'

const requestOf = (row: RequestRow): StoredRequest => ({
  state: row.state as StoredRequest['state'],
  request: JSON.parse(row.parameters) as AuthorizationRequest,
  userId: row.user_id,
  decision: row.decision === null ? null : (JSON.parse(row.decision) as Decision),
  grantId: row.grant_id,
  expiresAt: row.expires_at,
})

const findRequest = (id: string): Query<StoredRequest | undefined> =>
  query(
    { name: 'request', text: `SELECT ${COLUMNS} FROM oauth_requests WHERE id = $1`, values: [id] },
    ([found]: readonly RequestRow[]) => found && requestOf(found),
  )

const findCode = (codeDigest: string): Query<StoredRequest | undefined> =>
  query(
    {
      name: 'code',
      text: `SELECT ${COLUMNS} FROM oauth_requests WHERE code_digest = $1`,
      values: [codeDigest],
    },
    ([found]: readonly RequestRow[]) => found && requestOf(found),
  )

export const requestOperations = { addRequest, allowRequest, denyRequest, redeemCode }
export const requestReads = { findRequest, findCode }
