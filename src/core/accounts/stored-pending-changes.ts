/**
 * Changes that users have begun with a proof of identity in a session, and that another request completes: a link to a provider, a new
 * passkey, an authenticator app, another e-mail. The row of each ends with the proof (`endProofs`) and the session; without it the change is
 * worth nothing.
 */

import { firstRow, type Statement, type Steps, USER_KEY } from '#storage/operations/operation'
import { EMAIL_TOKEN_POLICIES } from './email-token.ts'

/** The purposes of e-mail tokens that complete such a change. */
const PENDING_PURPOSES = Object.entries(EMAIL_TOKEN_POLICIES).flatMap(([purpose, { needsProof }]) =>
  needsProof ? [purpose] : [],
)

export interface PendingChange {
  /** Unique among all changes, such as a digest. */
  readonly id: string
  /** For the clean-up, in milliseconds since the epoch. */
  readonly expiresAt: number
}

interface SessionOfChange {
  readonly id: string
  readonly needsCode: boolean
}

export const addPendingChange = (
  { id, expiresAt }: PendingChange,
  userId: string,
  session: SessionOfChange,
): Statement => ({
  text: `INSERT INTO pending_changes (user_key, id, session_id, needs_code, expires_at)
    SELECT key, $2, $3, $4, $5 FROM users WHERE id = $1`,
  values: [userId, id, session.id, Number(session.needsCode), expiresAt],
})

/** @returns false if this session has no such change, its proof has ended, or a proof now needs something else. */
export function* takePendingChange(id: string, session: string | SessionOfChange): Steps<boolean> {
  const [sessionId, needsCode] =
    typeof session === 'string' ? [session, null] : [session.id, Number(session.needsCode)]
  const taken = yield* firstRow({
    text: `DELETE FROM pending_changes
      WHERE id = $1 AND session_id = $2 AND needs_code = coalesce(CAST($3 AS integer), needs_code) RETURNING id`,
    values: [id, sessionId, needsCode],
  })
  return taken !== undefined
}

/**
 * Deletes the e-mail tokens whose change has no session any more. Those of a release before 0.4.0, and copied ones, have none: they end with
 * any proof of their user. Locks them in one order, because simultaneous sign-outs delete the same ones.
 */
export const deleteEndedTokens = (userId: string): Statement => ({
  text: ({ isOneOf, forUpdate }) => `WITH ended AS (
      SELECT digest FROM email_tokens
      WHERE user_key = ${USER_KEY} AND ${isOneOf('purpose', '$2', 'text')} AND NOT EXISTS (
        SELECT 1 FROM pending_changes JOIN sessions ON sessions.id = session_id WHERE pending_changes.id = digest
      )
      ORDER BY digest ${forUpdate}
    )
    DELETE FROM email_tokens WHERE digest IN (SELECT digest FROM ended) RETURNING digest`,
  values: [userId, PENDING_PURPOSES],
})

/**
 * Ends the pending changes of a user, who must be locked. @param exceptId the session whose changes stay; `null` for none.
 * @returns whether a change of the e-mail has ended.
 */
export function* endPendingChanges(userId: string, exceptId: string | null): Steps<boolean> {
  yield {
    text: `DELETE FROM pending_changes WHERE user_key = ${USER_KEY} AND session_id IS DISTINCT FROM CAST($2 AS text)`,
    values: [userId, exceptId],
  }
  const ended = yield deleteEndedTokens(userId)
  return ended.length > 0
}
