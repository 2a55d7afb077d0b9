/** Prepared statements that several operations use, each prepared once. */
import type { Session } from '../../auth/session.ts'
import type { User } from '../../users/user.ts'
import type { UserRefusal } from '../../users/user-store.ts'
import { refusalOf } from '../refusals.ts'
import {
  EMAIL_TOKEN_COLUMNS,
  SESSION_COLUMNS,
  selectUser,
  sessionColumns,
  toUser,
  type UserRow,
} from '../rows.ts'
import type { Connection } from './database.ts'
import { prepareEventStatements } from './event-operations.ts'
import { parameters } from './parameters.ts'

const INSERT_SESSION = `INSERT INTO sessions (user_key, ${SESSION_COLUMNS.join(', ')})
  SELECT key, ${parameters(SESSION_COLUMNS)} FROM users WHERE id = @userId`

/** Ends with a `WHERE`, so that further conditions can be appended. */
export const INSERT_EMAIL_TOKEN = `INSERT INTO email_tokens (user_key, ${EMAIL_TOKEN_COLUMNS.join(', ')})
  SELECT key, ${parameters(EMAIL_TOKEN_COLUMNS)} FROM users WHERE id = @userId`

/** What a write requires of its user. */
interface Requirements {
  /** The password hash that the user must still have; `null` for any. */
  readonly verifiedHash: string | null
  /** Whether the user must be enabled. */
  readonly onlyEnabled: boolean
}

export const prepareSharedStatements = (db: Connection) => {
  const insertSession = db.prepare(INSERT_SESSION)
  const deleteSessions = db.prepare(
    'DELETE FROM sessions WHERE user_key = (SELECT key FROM users WHERE id = ?) AND id IS NOT ?',
  )
  const deleteTokens = db.prepare(
    'DELETE FROM email_tokens WHERE user_key = (SELECT key FROM users WHERE id = ?)',
  )
  const selectState = db.prepare<[string], { disabled: number; password_hash: string }>(
    'SELECT disabled, password_hash FROM users WHERE id = ?',
  )
  const selectById = db.prepare<[string], UserRow>(`${selectUser()} WHERE id = ?`)

  return {
    ...prepareEventStatements(db),

    /** @returns why the user does not meet the requirements; `null` when the write may go ahead. */
    refusal(userId: string, { verifiedHash, onlyEnabled }: Requirements): UserRefusal | null {
      const user = selectState.get(userId)
      const verified = verifiedHash === null || user?.password_hash === verifiedHash
      return refusalOf(user && { disabled: user.disabled, verified }, { onlyEnabled })
    },

    /** @returns false when the user does not exist. */
    addSession: (session: Session): boolean =>
      insertSession.run({ ...sessionColumns(session), userId: session.userId }).changes === 1,

    /** @param exceptId the one session to keep; `null` for none. */
    revokeSessions(userId: string, exceptId: string | null): void {
      deleteSessions.run(userId, exceptId)
    },

    deleteTokens(userId: string): void {
      deleteTokens.run(userId)
    },

    /** Reads a user that the same transaction has changed, so the row exists. */
    readChanged: (id: string): User => toUser(selectById.get(id) as UserRow),
  }
}

export type SharedStatements = ReturnType<typeof prepareSharedStatements>
