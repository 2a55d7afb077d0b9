/** Removal of expired sessions, in slices between other writes. PostgreSQL removes a slice with one statement: `postgres-clean-up.ts`. */
import { firstRow, rows, type Steps } from '#storage/operations/operation'
import { invalidatesNothing, type Write } from '#storage/operations/write'

/** Timestamps in milliseconds since the epoch. */
export interface ExpiredSessions {
  /** Removes sessions whose absolute end is at or before it. */
  readonly endedBy: number
  /** Removes sessions whose last request is at or before this time. */
  readonly idleSince: number
}

const EXAMINED = 1_000

const EXPIRED = `SELECT id FROM (
    SELECT id, expires_at, last_request_at FROM sessions WHERE id > $1 ORDER BY id LIMIT ${EXAMINED}
  ) AS examined WHERE expires_at <= $2 OR last_request_at <= $3 ORDER BY id LIMIT $4`

const LAST_EXAMINED = `SELECT id FROM sessions WHERE id > $1 ORDER BY id LIMIT 1 OFFSET ${EXAMINED - 1}`

interface Id {
  readonly id: string
}

export const sessionRemoval = {
  /**
   * Removes expired ones of the next sessions, in the order of ids: an index of their ends would cost every request. Invalidates nothing:
   * `Authenticator` checks the expiry of cached sessions.
   * @param after the last id of the previous slice, `''` at the beginning. @returns the last id of this slice, `''` after the last session.
   */
  *removeSessions(
    { endedBy, idleSince }: ExpiredSessions,
    after: string,
    limit: number,
  ): Steps<Write<string>> {
    const last = yield* firstRow<Id>({ text: LAST_EXAMINED, values: [after] })
    const expired = yield* rows<Id>({ text: EXPIRED, values: [after, endedBy, idleSince, limit] })
    const ids = expired.map(({ id }) => id)
    yield {
      text: ({ isOneOf }) => `DELETE FROM sessions WHERE ${isOneOf('id', '$1', 'text')}`,
      values: [ids],
    }
    const end = last?.id ?? ''
    return invalidatesNothing(ids.length < limit ? end : (ids.at(-1) ?? end))
  },
}
