/** Which clients know of which session by an ID token, in the store. The writer thread of SQLite imports this module. */
import { type Query, query, rows, type Statement, type Steps } from '#storage/operations/operation'
import { invalidatesNothing, type Write } from '#storage/operations/write'
import type { SignInsTable } from './stored-rows.ts'

/** A session of a user that has ended, and of which a client must learn. */
export interface EndedSignIn {
  readonly id: string
  readonly sessionId: string
  readonly clientId: string
  readonly userId: string
  /** Failed ones. */
  readonly attempts: number
}

/** Notes that a client gets an ID token of a session. */
export const recordSignIn = (sessionId: string, clientId: string, userId: string): Statement => ({
  text: `INSERT INTO oauth_sign_ins (id, session_id, client_id, user_id, attempts, retry_at, expires_at)
    SELECT CAST($4 AS text), id, CAST($2 AS text), CAST($3 AS text), 0, 0, expires_at FROM sessions WHERE id = $1
    ON CONFLICT (id) DO NOTHING`,
  values: [sessionId, clientId, userId, `${sessionId}.${clientId}`],
})

type SignInRow = Omit<SignInsTable, 'retry_at' | 'expires_at'>

const COLUMNS = 'id, session_id, client_id, user_id, attempts'

const signInOf = (row: SignInRow): EndedSignIn => ({
  id: row.id,
  sessionId: row.session_id,
  clientId: row.client_id,
  userId: row.user_id,
  attempts: row.attempts,
})

/**
 * The sign-ins of the user whose session has ended since the last call.
 * @param retryAt when they are due again, unless they are removed until then.
 */
function* takeEndedSignIns(userId: string, retryAt: number): Steps<Write<readonly EndedSignIn[]>> {
  const ended = yield* rows<SignInRow>({
    text: `UPDATE oauth_sign_ins SET retry_at = $2 WHERE user_id = $1 AND retry_at = 0
      AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = session_id) RETURNING ${COLUMNS}`,
    values: [userId, retryAt],
  })
  return invalidatesNothing(ended.map(signInOf))
}

function* removeSignIn(id: string): Steps<Write<void>> {
  yield { text: 'DELETE FROM oauth_sign_ins WHERE id = $1', values: [id] }
  return invalidatesNothing(undefined)
}

function* retrySignIn(id: string, retryAt: number): Steps<Write<void>> {
  yield {
    text: 'UPDATE oauth_sign_ins SET attempts = attempts + 1, retry_at = $2 WHERE id = $1',
    values: [id, retryAt],
  }
  return invalidatesNothing(undefined)
}

/** Ended sign-ins whose next attempt is due. */
const listDueSignIns = (now: number, limit: number): Query<readonly EndedSignIn[]> =>
  query(
    {
      name: 'due-sign-ins',
      text: `SELECT ${COLUMNS} FROM oauth_sign_ins WHERE retry_at > 0 AND retry_at <= $1 ORDER BY retry_at LIMIT $2`,
      values: [now, limit],
    },
    (found: readonly SignInRow[]) => found.map(signInOf),
  )

export const signInOperations = { takeEndedSignIns, removeSignIn, retrySignIn }
export const signInReads = { listDueSignIns }
