/** Writes of the audit log, each in the transaction of the change that the event records. */

import { firstIdAt, newId } from '#base/ids'
import { firstRow, type Query, query, type Statement, type Steps } from '#storage/operations/operation'
import { parameters, valuesOf } from '#storage/operations/parameters'
import { invalidatesNothing, refusedFor, type UncachedWrite, type Write } from '#storage/operations/write'
import { lockUser } from '../users/user-locks.ts'
import type { AuditEvent } from './event.ts'
import { EVENT_COLUMNS, eventColumns } from './event-rows.ts'
import type { LogPosition } from './listing.ts'

/** The event, moved to a millisecond after `last` unless it is newer. */
export const eventAfter = (
  event: AuditEvent,
  last: Pick<AuditEvent, 'id' | 'at'> | undefined,
): AuditEvent => {
  if (last === undefined || last.id <= event.id) return event
  const at = last.at + 1
  return { ...event, id: newId(at), at }
}

/** Another event of the same change, which sorts after it. */
export const consequenceOf = (event: AuditEvent, type: string, details: AuditEvent['details']): AuditEvent =>
  eventAfter({ ...event, id: newId(event.at), type, details }, event)

const INSERT_EVENT = `INSERT INTO events (${EVENT_COLUMNS.join(', ')})`

const BY = 1 + EVENT_COLUMNS.length

export const eventValues = (event: AuditEvent<string | null>): readonly unknown[] =>
  valuesOf(EVENT_COLUMNS, eventColumns(event))

/** Records an event. Its user, if any, must be locked. */
export const recordStatement = (event: AuditEvent<string | null>): Statement => ({
  name: 'record',
  text: `${INSERT_EVENT} VALUES (${parameters(EVENT_COLUMNS, 1)})`,
  values: eventValues(event),
})

/**
 * Records an event, unless the session, API key or grant that makes the change has been revoked. As the last statement of the change the check costs
 * no round trip: it sees what was revoked before the user was locked.
 * @param credentialId `null`: nothing is checked. @returns false if it has been revoked: the change must be refused.
 */
export function* recordUnlessRevoked(
  credentialId: string | null,
  event: AuditEvent<string | null>,
): Steps<boolean> {
  if (credentialId === null) {
    yield recordStatement(event)
    return true
  }
  const recorded = yield* firstRow({
    name: 'record-unless-revoked',
    text: `${INSERT_EVENT} SELECT ${parameters(EVENT_COLUMNS, 1)}
      WHERE EXISTS (SELECT 1 FROM sessions WHERE id = $${BY}) OR EXISTS (SELECT 1 FROM api_keys WHERE id = $${BY})
        OR EXISTS (SELECT 1 FROM oauth_grants WHERE id = $${BY}) RETURNING id`,
    values: [...eventValues(event), credentialId],
  })
  return recorded !== undefined
}

/** Records the event of a removal as the newest of its user, who must be locked. */
export function* recordRemoval(event: AuditEvent): Steps<void> {
  const newest = yield* firstRow<Pick<AuditEvent, 'id' | 'at'>>({
    text: 'SELECT id, at FROM events WHERE user_id = $1 ORDER BY id DESC LIMIT 1',
    values: [event.userId],
  })
  yield recordStatement(eventAfter(event, newest))
}

/** With the e-mail, and the type of the event for its holder, after the columns of the event. */
const HOLDER_VALUES: Readonly<Record<string, string>> = {
  type: `CASE WHEN EXISTS (SELECT 1 FROM holder) THEN $${BY + 1} ELSE $${EVENT_COLUMNS.indexOf('type') + 1} END`,
  // The address of a stranger could not be erased with an account.
  ip: `CASE WHEN EXISTS (SELECT 1 FROM holder) THEN $${EVENT_COLUMNS.indexOf('ip') + 1} END`,
  user_id: `COALESCE($${EVENT_COLUMNS.indexOf('user_id') + 1}, (SELECT id FROM holder))`,
}

/**
 * Records an event of a request that names an e-mail, with the same work whether or not it has an account, whose event gets `type`.
 * @returns a row with the id of the user, or `null`, as `holder`.
 */
export const recordWithHolder = (email: string, event: AuditEvent<null>, type: string): Statement => ({
  name: 'record-with-holder',
  text: ({ forKeyShare }) => `WITH holder AS (SELECT id FROM users WHERE email = $${BY} ${forKeyShare})
    ${INSERT_EVENT}
    SELECT ${EVENT_COLUMNS.map((column, index) => HOLDER_VALUES[column] ?? `$${index + 1}`).join(', ')}
    RETURNING user_id AS holder`,
  values: [...eventValues(event), email, type],
})

/** @param since milliseconds since the epoch. */
export function* countEvents(userId: string, types: readonly string[], since: number): Steps<number> {
  const counted = yield* firstRow<{ count: number }>({
    text: ({ isOneOf }) =>
      `SELECT count(*) AS count FROM events WHERE user_id = $1 AND id >= $2 AND ${isOneOf('type', '$3', 'text')}`,
    values: [userId, firstIdAt(since), types],
  })
  return counted?.count ?? 0
}

/** A removal waits for the lock. */
const RECORD_IF_USER_EXISTS = `WITH found AS (SELECT key FROM users WHERE id = $${EVENT_COLUMNS.indexOf('user_id') + 1}`

export const eventOperations = {
  /** Stores an event unless its user is deleted: no event follows a deletion. */
  record: (event: AuditEvent): Query<UncachedWrite<void>> =>
    query(
      {
        name: 'record-if-user-exists',
        text: ({ forKeyShare }) => `${RECORD_IF_USER_EXISTS} ${forKeyShare})
          ${INSERT_EVENT} SELECT ${parameters(EVENT_COLUMNS, 1)} FROM found`,
        values: eventValues(event),
      },
      () => invalidatesNothing(undefined),
    ),

  /** Stores an event, unless there are `limit` of its user and type since then. @returns `userNotFound` if its user was removed. */
  *recordLimited(
    event: AuditEvent,
    limit: number,
    since: number,
  ): Steps<Write<'recorded' | 'limited' | 'userNotFound'>> {
    // Concurrent calls for one user run one after the other, so each counts the events of the earlier ones.
    if ((yield* lockUser(event.userId)) === undefined) return refusedFor(event.userId, 'userNotFound')
    if ((yield* countEvents(event.userId, [event.type], since)) >= limit) return invalidatesNothing('limited')
    yield recordStatement(event)
    return invalidatesNothing('recorded')
  },
}

/** Sorts after every UUID, in every collation. */
const AFTER_EVERY_ID = 'g'

export const eventReads = {
  /** `undefined` if the event was removed. */
  findPosition: (id: string): Query<LogPosition | undefined> =>
    query(
      { name: 'event-position', text: 'SELECT position, id FROM events WHERE id = $1', values: [id] },
      ([event]: readonly LogPosition[]) => event,
    ),

  /**
   * A position before the first event at or after an id. Overlapping transactions become visible in another order than that of their ids: a
   * thousand events are compared, so that none is left out.
   */
  findPositionBefore: (id: string): Query<LogPosition | undefined> =>
    query(
      {
        text: `SELECT min(position) AS first FROM
          (SELECT position FROM events WHERE id >= $1 ORDER BY id LIMIT 1000) AS later`,
        values: [id],
      },
      ([row]: readonly { readonly first: number | null }[]) =>
        row?.first == null ? undefined : { position: row.first - 1, id: AFTER_EVERY_ID },
    ),

  /** @param limit counts no further, because it takes time in proportion. */
  countAfter: ({ position, id }: LogPosition, limit: number): Query<number> =>
    query(
      {
        text: `SELECT count(*) AS count FROM
          (SELECT id FROM events WHERE (position, id) > ($1, $2) ORDER BY position, id LIMIT $3) AS later`,
        values: [position, id, limit],
      },
      ([row]: readonly { readonly count: number }[]) => Number(row?.count ?? 0),
    ),
}
