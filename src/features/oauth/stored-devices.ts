/** Requests of devices in the store: pending, then approved or denied, and deleted when they are redeemed. The writer thread of SQLite imports this module. */
import type { AuditEvent } from '#core/audit-log/event'
import { recordStatement } from '#core/audit-log/stored-events'
import { refusalOf } from '#core/users/refusals'
import { lockUser } from '#core/users/user-locks'
import { firstRow, type Query, query, type Steps } from '#storage/operations/operation'
import { invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import type { NewGrant } from './grant.ts'
import { exchangeForGrant, isSessionAlive } from './stored-grants.ts'
import type { Decision } from './stored-requests.ts'
import type { DeviceRequestsTable } from './stored-rows.ts'

/** What a device asks for. */
export interface DeviceRequest {
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly resource: string | null
  /** The client address; `null`: it is not known. */
  readonly address: string | null
  /** Milliseconds since the epoch. */
  readonly requestedAt: number
}

export interface StoredDeviceRequest {
  /** The digest of the device code. */
  readonly id: string
  readonly state: 'pending' | 'approved' | 'denied'
  readonly request: DeviceRequest
  readonly userId: string | null
  readonly decision: Decision | null
  /** When the device last asked for the decision, in milliseconds since the epoch; 0: never. */
  readonly polledAt: number
  readonly expiresAt: number
}

/** Pending requests of one client from one network. */
const MAX_PENDING = 10

/**
 * @param requester a digest of the client and the network.
 * @returns `taken`: another request has the user code.
 */
function* addDeviceRequest(
  id: string,
  userCodeDigest: string,
  requester: string,
  request: DeviceRequest,
  expiresAt: number,
): Steps<Write<'added' | 'taken' | 'tooMany'>> {
  // The bound is exact.
  yield { text: ({ lockByName }) => lockByName('$1'), values: [`oauth_device_requests ${requester}`] }
  const { pending } = (yield* firstRow<{ pending: number }>({
    text: `SELECT count(*) AS pending FROM oauth_device_requests
      WHERE requester = $1 AND state = 'pending' AND expires_at > $2`,
    values: [requester, request.requestedAt],
  })) ?? { pending: 0 }
  if (pending >= MAX_PENDING) return invalidatesNothing('tooMany')
  const added = yield* firstRow({
    text: `INSERT INTO oauth_device_requests (id, user_code_digest, requester, parameters, state, user_id, decision,
        polled_at, expires_at)
      VALUES ($1, $2, $3, $4, 'pending', NULL, NULL, 0, $5) ON CONFLICT (user_code_digest) DO NOTHING RETURNING id`,
    values: [id, userCodeDigest, requester, JSON.stringify(request), expiresAt],
  })
  return invalidatesNothing(added === undefined ? 'taken' : 'added')
}

/**
 * The event's user approves a request: of two decisions at once, one counts.
 * @returns whether it was pending, and the user and the session are valid.
 */
function* approveDevice(
  id: string,
  decision: Decision,
  sessionIdle: number,
  event: AuditEvent,
): Steps<Write<boolean>> {
  const { userId, at: now } = event
  if (refusalOf(yield* lockUser(userId), { onlyEnabled: true }) !== null) return refusedFor(userId, false)
  if (!(yield* isSessionAlive(decision.sessionId, now, now - sessionIdle))) return refusedFor(userId, false)
  const approved = yield* firstRow({
    text: `UPDATE oauth_device_requests SET state = 'approved', user_id = $2, decision = $3
      WHERE id = $1 AND state = 'pending' AND expires_at > $4 RETURNING id`,
    values: [id, userId, JSON.stringify(decision), now],
  })
  if (approved === undefined) return refusedFor(userId, false)
  yield recordStatement(event)
  return invalidatesNothing(true)
}

/** @returns whether it was pending. */
function* denyDevice(id: string, now: number): Steps<Write<boolean>> {
  const denied = yield* firstRow({
    text: `UPDATE oauth_device_requests SET state = 'denied'
      WHERE id = $1 AND state = 'pending' AND expires_at > $2 RETURNING id`,
    values: [id, now],
  })
  return invalidatesNothing(denied !== undefined)
}

/** Notes that the device has asked. @param polledAt when it had asked before: of two requests at once, one counts. */
function* notePoll(id: string, polledAt: number, now: number): Steps<Write<boolean>> {
  const noted = yield* firstRow({
    text: 'UPDATE oauth_device_requests SET polled_at = $3 WHERE id = $1 AND polled_at = $2 RETURNING id',
    values: [id, polledAt, now],
  })
  return invalidatesNothing(noted !== undefined)
}

/** Redeems an approved request for a grant of the event's user: of many requests at once, one. */
function* redeemDevice(
  id: string,
  grant: NewGrant,
  decision: Decision,
  sessionIdle: number,
  event: AuditEvent,
): Steps<Write<'redeemed' | 'used' | 'ended'>> {
  const take = {
    text: `DELETE FROM oauth_device_requests
      WHERE id = $1 AND state = 'approved' AND expires_at > $2 RETURNING id`,
    values: [id, event.at],
  }
  return yield* exchangeForGrant(take, grant, decision.sessionId, sessionIdle, event)
}

type DeviceRow = Omit<DeviceRequestsTable, 'user_code_digest' | 'requester'>

const COLUMNS = 'id, parameters, state, user_id, decision, polled_at, expires_at'

const deviceOf = (row: DeviceRow): StoredDeviceRequest => ({
  id: row.id,
  state: row.state as StoredDeviceRequest['state'],
  request: JSON.parse(row.parameters) as DeviceRequest,
  userId: row.user_id,
  decision: row.decision === null ? null : (JSON.parse(row.decision) as Decision),
  polledAt: row.polled_at,
  expiresAt: row.expires_at,
})

const findDevice = (id: string): Query<StoredDeviceRequest | undefined> =>
  query(
    { name: 'device', text: `SELECT ${COLUMNS} FROM oauth_device_requests WHERE id = $1`, values: [id] },
    ([found]: readonly DeviceRow[]) => found && deviceOf(found),
  )

const findDeviceByUserCode = (digest: string): Query<StoredDeviceRequest | undefined> =>
  query(
    {
      name: 'device-by-user-code',
      text: `SELECT ${COLUMNS} FROM oauth_device_requests WHERE user_code_digest = $1`,
      values: [digest],
    },
    ([found]: readonly DeviceRow[]) => found && deviceOf(found),
  )

export const deviceOperations = { addDeviceRequest, approveDevice, denyDevice, notePoll, redeemDevice }
export const deviceReads = { findDevice, findDeviceByUserCode }
