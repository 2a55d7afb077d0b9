/** Grants in the store. The writer thread of SQLite imports this module. Every write locks the user first. */
import type { AuditEvent } from '#core/audit-log/event'
import { consequenceOf, recordStatement } from '#core/audit-log/stored-events'
import { refusalOf } from '#core/users/refusals'
import { lockUser } from '#core/users/user-locks'
import {
  firstRow,
  type Query,
  query,
  rows,
  type Statement,
  type Steps,
  USER_KEY,
} from '#storage/operations/operation'
import { endsAccess, invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import { type Grant, MAX_GRANTS, type NewGrant } from './grant.ts'
import { FIRST, type Generations, rotated } from './refresh-rule.ts'
import { noteUse } from './stored-clients.ts'
import type { GrantsTable } from './stored-rows.ts'
import { recordSignIn } from './stored-sign-ins.ts'

const COLUMNS = `oauth_grants.id, client_id, scopes, resource, organization, session_id, oauth_grants.authenticated_at, jkt, secret,
  oauth_grants.created_at, used_at, oauth_grants.expires_at`

type GrantRow = Pick<
  GrantsTable,
  | 'id'
  | 'client_id'
  | 'scopes'
  | 'resource'
  | 'organization'
  | 'session_id'
  | 'authenticated_at'
  | 'jkt'
  | 'secret'
  | 'created_at'
  | 'used_at'
  | 'expires_at'
>

const grantOf = (row: GrantRow): NewGrant => ({
  id: row.id,
  clientId: row.client_id,
  scopes: JSON.parse(row.scopes) as string[],
  resource: row.resource,
  organization: row.organization,
  sessionId: row.session_id,
  authenticatedAt: row.authenticated_at,
  jkt: row.jkt,
  secret: row.secret,
  createdAt: row.created_at,
  usedAt: row.used_at,
  expiresAt: row.expires_at,
})

/** Whether the session of a grant is valid: `$1` is its id, `$2` now, `$3` since when it must have been used. */
export function* isSessionAlive(sessionId: string | null, now: number, idleSince: number): Steps<boolean> {
  if (sessionId === null) return true
  const found = yield* firstRow({
    text: 'SELECT id FROM sessions WHERE id = $1 AND expires_at > $2 AND last_request_at > $3',
    values: [sessionId, now, idleSince],
  })
  return found !== undefined
}

/** Deletes grants of the user, who is locked, so that there is room for another one. @returns the ids of those that it ends. */
function* makeRoom(userId: string): Steps<readonly string[]> {
  const ended = yield* rows<{ id: string }>({
    text: `DELETE FROM oauth_grants WHERE id IN (
        SELECT id FROM oauth_grants WHERE user_key = ${USER_KEY}
        ORDER BY used_at DESC, id DESC LIMIT ${MAX_GRANTS} OFFSET ${MAX_GRANTS - 1}
      ) RETURNING id`,
    values: [userId],
  })
  return ended.map(({ id }) => id)
}

/** Adds a grant of the event's user, who is locked. @returns the ids of the grants that it has replaced. */
function* addGrant(grant: NewGrant, event: AuditEvent): Steps<readonly string[]> {
  const { userId } = event
  // Those of ended sessions only remembered the consent, which the new one remembers now.
  yield {
    text: `DELETE FROM oauth_grants WHERE user_key = ${USER_KEY} AND client_id = $2
      AND session_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = session_id)`,
    values: [userId, grant.clientId],
  }
  const ended = yield* makeRoom(userId)
  yield {
    text: `INSERT INTO oauth_grants (id, user_key, client_id, scopes, resource, session_id, authenticated_at, secret,
        generation, predecessor, issued, issued_at, is_presented, created_at, used_at, expires_at, jkt, organization)
      SELECT $2, key, $3, $4, CAST($5 AS text), CAST($6 AS text), CAST($7 AS bigint), CAST($8 AS text),
        CAST($9 AS integer), CAST($10 AS integer), CAST($9 AS integer), CAST($11 AS bigint), 0,
        CAST($11 AS bigint), CAST($11 AS bigint), CAST($12 AS bigint), CAST($13 AS text), CAST($14 AS text)
      FROM users WHERE id = $1`,
    values: [
      ...[userId, grant.id, grant.clientId, JSON.stringify(grant.scopes), grant.resource, grant.sessionId],
      ...[grant.authenticatedAt, grant.secret, FIRST.current, FIRST.predecessor],
      ...[grant.createdAt, grant.expiresAt, grant.jkt, grant.organization],
    ],
  }
  yield noteUse(grant.clientId, grant.createdAt)
  yield recordStatement(event)
  let last = event
  for (const id of ended) {
    last = consequenceOf(last, 'grant.revoked', { grant: id })
    yield recordStatement(last)
  }
  return ended
}

/**
 * Exchanges what a client has for a grant of the event's user: of many requests at once, one.
 * @param take changes the row that the client is entitled by, and returns it unless it is used up.
 * @param sessionId in which the user has decided. @param sessionIdle milliseconds.
 * @returns `ended`: the user or the session may not have it any more.
 */
export function* exchangeForGrant(
  take: Statement,
  grant: NewGrant,
  sessionId: string,
  sessionIdle: number,
  event: AuditEvent,
): Steps<Write<'redeemed' | 'used' | 'ended'>> {
  const { userId, at: now } = event
  if (refusalOf(yield* lockUser(userId), { onlyEnabled: true }) !== null) return refusedFor(userId, 'ended')
  // Also for a grant that outlives the session: the user who ends it ends what was begun in it.
  if (!(yield* isSessionAlive(sessionId, now, now - sessionIdle))) return refusedFor(userId, 'ended')
  if ((yield* firstRow(take)) === undefined) return refusedFor(userId, 'used')
  const replaced = yield* addGrant(grant, event)
  if (grant.scopes.includes('openid')) yield recordSignIn(sessionId, grant.clientId, userId)
  return replaced.length > 0 ? endsAccess(userId, 'redeemed') : invalidatesNothing('redeemed')
}

/** Ends a grant of the event's user. @returns whether there was one. */
function* endGrant(id: string, event: AuditEvent, onlyEnabled: boolean): Steps<Write<boolean>> {
  const { userId } = event
  if (refusalOf(yield* lockUser(userId), { onlyEnabled }) !== null) return refusedFor(userId, false)
  const ended = yield* firstRow({
    text: `DELETE FROM oauth_grants WHERE id = $2 AND user_key = ${USER_KEY} RETURNING id`,
    values: [userId, id],
  })
  if (ended === undefined) return refusedFor(userId, false)
  yield recordStatement(event)
  return endsAccess(userId, true)
}

/** Limits in milliseconds. */
export interface RefreshLimits {
  /** For which a refresh token is not replaced after its issue; `null`: tokens are never replaced. */
  readonly window: number | null
  /** Without use of the grant. */
  readonly idle: number
  /** Without use of the session that the grant ends with. */
  readonly sessionIdle: number
}

const STATE_COLUMNS = 'generation, predecessor, issued, issued_at, is_presented'

type RefreshState = GrantRow &
  Pick<GrantsTable, 'generation' | 'predecessor' | 'issued' | 'issued_at' | 'is_presented'>

const generationsOf = (row: RefreshState): Generations => ({
  current: row.generation,
  predecessor: row.predecessor,
  issued: row.issued,
  isPresented: row.is_presented === 1,
})

/**
 * Uses a refresh token.
 * @param generation of an authentic token of the grant.
 * @param event `grant.reused` of its user, if the grant must end.
 * @returns the generation of the token to respond with; `ended`: the grant is not valid.
 */
function* refreshGrant(
  id: string,
  generation: number,
  { window, idle, sessionIdle }: RefreshLimits,
  event: AuditEvent,
): Steps<Write<number | 'ended' | 'reused'>> {
  const { userId, at: now } = event
  if (refusalOf(yield* lockUser(userId), { onlyEnabled: true }) !== null) return refusedFor(userId, 'ended')
  const found = yield* firstRow<RefreshState>({
    text: `SELECT ${COLUMNS}, ${STATE_COLUMNS} FROM oauth_grants
      WHERE id = $2 AND user_key = ${USER_KEY}`,
    values: [userId, id],
  })
  if (found === undefined || found.expires_at <= now || found.used_at + idle <= now)
    return refusedFor(userId, 'ended')
  if (!(yield* isSessionAlive(found.session_id, now, now - sessionIdle))) return refusedFor(userId, 'ended')
  const state = generationsOf(found)
  const isYoung = window === null || now - found.issued_at < window
  const next = rotated(state, generation, isYoung)
  if (next === null) {
    yield { text: 'DELETE FROM oauth_grants WHERE id = $1', values: [id] }
    yield recordStatement(event)
    return endsAccess(userId, 'reused')
  }
  yield {
    text: `UPDATE oauth_grants SET generation = $2, predecessor = $3, issued = $4, is_presented = $5,
        issued_at = CASE WHEN generation = $2 THEN issued_at ELSE CAST($6 AS bigint) END, used_at = CAST($6 AS bigint)
      WHERE id = $1`,
    values: [id, next.current, next.predecessor, next.issued, Number(next.isPresented), now],
  }
  return invalidatesNothing(next.current)
}

/** A grant with the id of its user and its refresh tokens. */
export interface FoundGrant {
  readonly grant: NewGrant
  readonly userId: string
  readonly generations: Generations
}

const findGrant = (id: string): Query<FoundGrant | undefined> =>
  query(
    {
      name: 'grant',
      text: `SELECT ${COLUMNS}, ${STATE_COLUMNS}, users.id AS user_id FROM oauth_grants JOIN users ON users.key = user_key
        WHERE oauth_grants.id = $1`,
      values: [id],
    },
    ([found]: readonly (RefreshState & { user_id: string })[]) =>
      found && {
        grant: grantOf(found),
        userId: found.user_id,
        generations: generationsOf(found),
      },
  )

/** The grants of a user that have not expired, the last used first. */
const listGrants = (userId: string, now: number): Query<readonly Grant[]> =>
  query(
    {
      name: 'grants',
      text: `SELECT ${COLUMNS} FROM oauth_grants
        WHERE user_key = ${USER_KEY} AND oauth_grants.expires_at > $2 ORDER BY used_at DESC, oauth_grants.id DESC`,
      values: [userId, now],
    },
    (found: readonly GrantRow[]) =>
      found.map(row => {
        const { secret: _, ...grant } = grantOf(row)
        return grant
      }),
  )

export const grantOperations = { endGrant, refreshGrant }
export const grantReads = { findGrant, listGrants }
