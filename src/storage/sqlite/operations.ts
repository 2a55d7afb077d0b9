/** Every write, as the writer thread runs it. Each runs whole or not at all, inside a transaction with others. */
import type { RequestMoment } from '../../auth/last-requests.ts'
import type { NewUser, Session } from '../../auth/session.ts'
import { searchKey, type User, type UserChanges } from '../../users/user.ts'
import type { UpdateOptions } from '../../users/user-store.ts'
import type { Connection } from './database.ts'
import { SELECT_USER, toUser, type UserRow } from './rows.ts'

const isEmailTaken = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'SQLITE_CONSTRAINT_UNIQUE'

/** The columns that a change sets. */
const columns = ({
  firstName,
  lastName,
  email,
  emailVerified,
  disabled,
}: UserChanges): Record<string, unknown> => ({
  ...(firstName !== undefined && { first_name: firstName, first_name_key: searchKey(firstName) }),
  ...(lastName !== undefined && { last_name: lastName, last_name_key: searchKey(lastName) }),
  ...(email !== undefined && { email }),
  ...(emailVerified !== undefined && { email_verified: Number(emailVerified) }),
  ...(disabled !== undefined && { disabled: Number(disabled) }),
})

/** Prepares the operations on the writer's connection. */
export const prepareOperations = (db: Connection) => {
  const insertUser = db.prepare(
    `INSERT INTO users (id, email, password_hash, first_name, last_name, first_name_key, last_name_key,
                        email_verified, disabled, created_at, updated_at)
     VALUES (@id, @email, @passwordHash, @firstName, @lastName, @firstNameKey, @lastNameKey,
             @emailVerified, @disabled, @createdAt, @updatedAt)`,
  )
  const insertSession = db.prepare(
    `INSERT INTO sessions (id, user_id, created_at, expires_at, last_request_at)
     VALUES (@id, @userId, @createdAt, @expiresAt, @lastRequestAt)`,
  )
  const insertSessionIfUnchanged = db.prepare(
    `INSERT INTO sessions (id, user_id, created_at, expires_at, last_request_at)
     SELECT @id, id, @createdAt, @expiresAt, @lastRequestAt FROM users
     WHERE id = @userId AND password_hash = @verifiedHash AND disabled = 0`,
  )
  const deleteSessions = db.prepare('DELETE FROM sessions WHERE user_id = ?')
  const replaceHash = db.prepare('UPDATE users SET password_hash = ? WHERE id = ? AND password_hash = ?')
  const selectUser = db.prepare<[string], UserRow>(`${SELECT_USER} WHERE users.id = ?`)
  const raiseUser = db.prepare(
    `INSERT INTO last_requests (user_id, at) SELECT id, @at FROM users WHERE id = @id
     ON CONFLICT (user_id) DO UPDATE SET at = max(at, excluded.at)`,
  )
  const raiseSession = db.prepare(
    'UPDATE sessions SET last_request_at = max(last_request_at, @at) WHERE id = @id',
  )

  return {
    /** Does nothing; who waits for it has waited for everything before it. */
    barrier(): void {},

    addUser(user: NewUser, session: Session): boolean {
      try {
        insertUser.run({
          ...user,
          firstNameKey: searchKey(user.firstName),
          lastNameKey: searchKey(user.lastName),
          emailVerified: Number(user.emailVerified),
          disabled: Number(user.disabled),
        })
      } catch (error) {
        if (isEmailTaken(error)) return false
        throw error
      }
      insertSession.run(session)
      return true
    },

    openSession(session: Session, verifiedHash: string): boolean {
      return insertSessionIfUnchanged.run({ ...session, verifiedHash }).changes === 1
    },

    rehash(userId: string, from: string, to: string): void {
      replaceHash.run(to, userId, from)
    },

    updateUser(
      id: string,
      changes: UserChanges,
      at: number,
      { endSessions, onlyEnabled }: UpdateOptions,
    ): User | 'emailTaken' | undefined {
      const set = { ...columns(changes), updated_at: at }
      const assignments = Object.keys(set).map(column => `${column} = @${column}`)
      try {
        const where = onlyEnabled ? 'id = @id AND disabled = 0' : 'id = @id'
        const { changes: rows } = db
          .prepare(`UPDATE users SET ${assignments.join(', ')} WHERE ${where}`)
          .run({ ...set, id })
        if (rows === 0) return undefined
      } catch (error) {
        if (isEmailTaken(error)) return 'emailTaken'
        throw error
      }
      if (endSessions) deleteSessions.run(id)
      const row = selectUser.get(id)
      return row && toUser(row)
    },

    noteLastRequests(users: readonly RequestMoment[], sessions: readonly RequestMoment[]): void {
      for (const moment of users) raiseUser.run(moment)
      for (const moment of sessions) raiseSession.run(moment)
    },
  }
}

export type Operations = ReturnType<typeof prepareOperations>
