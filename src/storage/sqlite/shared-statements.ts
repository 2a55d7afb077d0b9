/** The statements that several operations have in common, each prepared once. */
import type { Session } from '../../auth/session.ts'
import type { User } from '../../users/user.ts'
import type { UserRefusal } from '../../users/user-store.ts'
import { SESSION_COLUMNS, selectUser, sessionColumns, toUser, type UserRow } from '../rows.ts'
import type { Connection } from './database.ts'
import { prepareRecord, prepareRecordOfUser, prepareRecordRemoval } from './event-operations.ts'
import { parameters } from './queries.ts'

const INSERT_SESSION = `INSERT INTO sessions (user_key, ${SESSION_COLUMNS.join(', ')})
  SELECT key, ${parameters(SESSION_COLUMNS)} FROM users WHERE id = @userId`

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
    record: prepareRecord(db),
    recordOfUser: prepareRecordOfUser(db),
    recordRemoval: prepareRecordRemoval(db),

    /**
     * Why nothing may be done to a user, `null` where it may.
     * @param verifiedHash where given, it has to be the hash of the user's password.
     * @param onlyEnabled whether the user has to be enabled.
     */
    refusal(userId: string, verifiedHash: string | null, onlyEnabled = true): UserRefusal | null {
      const user = selectState.get(userId)
      if (user === undefined) return 'userNotFound'
      if (onlyEnabled && user.disabled === 1) return 'accountDisabled'
      return verifiedHash === null || user.password_hash === verifiedHash ? null : 'passwordChanged'
    },

    /** @returns false when there is no such user. */
    addSession: (session: Session): boolean =>
      insertSession.run({ ...sessionColumns(session), userId: session.userId }).changes === 1,

    /** @param exceptId the session that stays; `null` for none. */
    deleteSessions(userId: string, exceptId: string | null): void {
      deleteSessions.run(userId, exceptId)
    },

    deleteTokens(userId: string): void {
      deleteTokens.run(userId)
    },

    /** A user who was changed in the same transaction. */
    readChanged: (id: string): User => toUser(selectById.get(id) as UserRow),
  }
}

export type SharedStatements = ReturnType<typeof prepareSharedStatements>
