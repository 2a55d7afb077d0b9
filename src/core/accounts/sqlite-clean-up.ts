/**
 * Removal of expired sessions, in slices between other writes. Nothing is invalidated, because `Authenticator` checks the expiry of
 * cached sessions itself.
 */

import { invalidatesNothing, type Write } from '#storage/operations/write'
import type { Connection } from '#storage/sqlite/database'
import type { ExpiredSessions } from '../store/stores.ts'

/** Sessions that one slice examines, in 0.3 ms. */
const SESSIONS_EXAMINED = 1_000

const NEXT_SESSIONS = `SELECT id, expires_at, last_request_at FROM sessions WHERE id > @after ORDER BY id LIMIT ${SESSIONS_EXAMINED}`

export const prepareCleanUpOperations = (db: Connection) => {
  const expiredSessions = db
    .prepare<[object], string>(
      `SELECT id FROM (${NEXT_SESSIONS})
       WHERE expires_at <= @endedBy OR last_request_at <= @idleSince ORDER BY id LIMIT @limit`,
    )
    .pluck()
  const lastExamined = db
    .prepare<[string], string>(
      `SELECT id FROM sessions WHERE id > ? ORDER BY id LIMIT 1 OFFSET ${SESSIONS_EXAMINED - 1}`,
    )
    .pluck()
  const deleteSession = db.prepare('DELETE FROM sessions WHERE id = ?')
  return {
    removeSessions(expired: ExpiredSessions, after: string, limit: number): Write<string> {
      const last = lastExamined.get(after) ?? ''
      const ids = expiredSessions.all({ ...expired, after, limit })
      for (const id of ids) deleteSession.run(id)
      return invalidatesNothing(ids.length < limit ? last : (ids.at(-1) ?? last))
    },
  }
}
