/** Authorization requests in the store: pending, then a code, then used. The writer thread of SQLite imports this module. */
import type { AuditEvent } from '#core/audit-log/event'
import { firstRow, type Query, query, type Statement, type Steps } from '#storage/operations/operation'
import { invalidatesNothing, type Write } from '#storage/operations/write'
import type { AuthorizationRequest } from './authorization-request.ts'
import type { NewGrant } from './grant.ts'
import { exchangeForGrant } from './stored-grants.ts'
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
  readonly state: 'pushed' | 'pending' | 'code' | 'used'
  readonly request: AuthorizationRequest
  readonly userId: string | null
  readonly decision: Decision | null
  readonly grantId: string | null
  readonly expiresAt: number
}

const insert = (
  state: 'pushed' | 'pending',
  id: string,
  request: AuthorizationRequest,
  expiresAt: number,
): Statement => ({
  text: `INSERT INTO oauth_requests (id, client_id, parameters, state, code_digest, user_id, decision, grant_id, expires_at)
      VALUES ($1, $2, $3, $5, '', NULL, NULL, NULL, $4)`,
  values: [id, request.clientId, JSON.stringify(request), expiresAt, state],
})

function* addRequest(id: string, request: AuthorizationRequest, expiresAt: number): Steps<Write<void>> {
  yield insert('pending', id, request, expiresAt)
  return invalidatesNothing(undefined)
}

function* pushRequest(id: string, request: AuthorizationRequest, expiresAt: number): Steps<Write<void>> {
  yield insert('pushed', id, request, expiresAt)
  return invalidatesNothing(undefined)
}

/**
 * Makes a pushed request of the client pending, under another id: of many browsers at once, for one.
 * @returns `null` if there is none.
 */
function* takePushedRequest(
  pushed: string,
  clientId: string,
  id: string,
  expiresAt: number,
  now: number,
): Steps<Write<AuthorizationRequest | null>> {
  const taken = yield* firstRow<Pick<RequestsTable, 'parameters'>>({
    text: `UPDATE oauth_requests SET id = $3, state = 'pending', expires_at = $4
      WHERE id = $1 AND client_id = $2 AND state = 'pushed' AND expires_at > $5 RETURNING parameters`,
    values: [pushed, clientId, id, expiresAt, now],
  })
  return invalidatesNothing(
    taken === undefined ? null : (JSON.parse(taken.parameters) as AuthorizationRequest),
  )
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
 */
function* redeemCode(
  codeDigest: string,
  grant: NewGrant,
  decision: Decision,
  sessionIdle: number,
  kept: number,
  event: AuditEvent,
): Steps<Write<'redeemed' | 'used' | 'ended'>> {
  const take = {
    text: `UPDATE oauth_requests SET state = 'used', grant_id = $2, expires_at = $3
      WHERE code_digest = $1 AND state = 'code' AND expires_at > $4 RETURNING id`,
    values: [codeDigest, grant.id, kept, event.at],
  }
  return yield* exchangeForGrant(take, grant, decision.sessionId, sessionIdle, event)
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

export const requestOperations = {
  addRequest,
  pushRequest,
  takePushedRequest,
  allowRequest,
  denyRequest,
  redeemCode,
}
export const requestReads = { findRequest, findCode }
