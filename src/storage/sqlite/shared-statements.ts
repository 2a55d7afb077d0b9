/** The statements that several operations have in common, each prepared once. */
import type { Session } from '../../auth/session.ts'
import type { User } from '../../users/user.ts'
import { SESSION_COLUMNS, selectUser, sessionColumns, toUser, type UserRow } from '../rows.ts'
import type { Connection } from './database.ts'
import { prepareRecord } from './event-operations.ts'
import { parameters } from './parameters.ts'

export const INSERT_SESSION = `INSERT INTO sessions (user_key, ${SESSION_COLUMNS.join(', ')})
  SELECT key, ${parameters(SESSION_COLUMNS)} FROM users WHERE id = @userId`

/** What {@link INSERT_SESSION} takes. */
export const sessionParameters = (session: Session) => ({
  ...sessionColumns(session),
  userId: session.userId,
})

export const prepareSharedStatements = (db: Connection) => {
  const insertSession = db.prepare(INSERT_SESSION)
  const deleteSessions = db.prepare(
    'DELETE FROM sessions WHERE user_key = (SELECT key FROM users WHERE id = ?) AND id IS NOT ?',
  )
  const deleteTokens = db.prepare(
    'DELETE FROM mailed_tokens WHERE user_key = (SELECT key FROM users WHERE id = ?)',
  )
  const selectById = db.prepare<[string], UserRow>(`${selectUser()} WHERE id = ?`)

  return {
    record: prepareRecord(db),

    /** @returns false when there is no such user. */
    addSession: (session: Session): boolean => insertSession.run(sessionParameters(session)).changes === 1,

    /** @param exceptId the session that stays; `null` for none. */
    deleteSessions(userId: string, exceptId: string | null): void {
      deleteSessions.run(userId, exceptId)
    },

    deleteTokens(userId: string): void {
      deleteTokens.run(userId)
    },

    readUser(id: string): User | undefined {
      const row = selectById.get(id)
      return row && toUser(row)
    },
  }
}

export type SharedStatements = ReturnType<typeof prepareSharedStatements>
