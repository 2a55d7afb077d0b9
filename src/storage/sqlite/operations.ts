/** Every write, as the writer thread runs it. Each runs whole or not at all, inside a transaction with others. */
import type { SessionMoment } from '../../auth/last-request-store.ts'
import type { NewUser, Session } from '../../auth/session.ts'
import { searchKey, type User, type UserChanges } from '../../users/user.ts'
import type { UpdateOptions } from '../../users/user-store.ts'
import { changedColumns, selectUser, toUser, type UserRow } from '../rows.ts'
import type { Connection } from './database.ts'

const isEmailTaken = (error: unknown): boolean =>
  error instanceof Error &&
  'code' in error &&
  error.code === 'SQLITE_CONSTRAINT_UNIQUE' &&
  error.message.endsWith('users.email')

/** Prepares the operations on the writer's connection. */
export const prepareOperations = (db: Connection) => {
  const insertUser = db.prepare(
    `INSERT INTO users (id, email, password_hash, first_name, last_name, first_name_key, last_name_key,
                        email_verified, disabled, created_at, updated_at)
     VALUES (@id, @email, @passwordHash, @firstName, @lastName, @firstNameKey, @lastNameKey,
             @emailVerified, @disabled, @createdAt, @updatedAt)`,
  )
  const insertSession = `INSERT INTO sessions (id, user_key, created_at, expires_at, last_request_at, ip, user_agent)
     SELECT @id, key, @createdAt, @expiresAt, @lastRequestAt, @ip, @userAgent FROM users WHERE id = @userId`
  const addSession = db.prepare(insertSession)
  const addSessionIfUnchanged = db.prepare(
    `${insertSession} AND password_hash = @verifiedHash AND disabled = 0`,
  )
  const deleteSessions = db.prepare(
    'DELETE FROM sessions WHERE user_key = (SELECT key FROM users WHERE id = ?) AND id IS NOT ?',
  )
  const deleteSession = db.prepare(
    'DELETE FROM sessions WHERE id = ? AND user_key = (SELECT key FROM users WHERE id = ?)',
  )
  const setHash = db.prepare(
    `UPDATE users SET password_hash = ?, updated_at = ? WHERE id = ? AND password_hash = ? AND disabled = 0`,
  )
  const replaceHash = db.prepare('UPDATE users SET password_hash = ? WHERE id = ? AND password_hash = ?')
  const readUser = db.prepare<[string], UserRow>(`${selectUser()} WHERE id = ?`)
  const raiseUser = db.prepare('UPDATE last_requests SET at = max(at, ?) WHERE user_key = ?')
  const noteFirst = db.prepare(
    'INSERT INTO last_requests (user_key, at) SELECT key, ? FROM users WHERE key = ?',
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
      if (addSession.run(session).changes === 0) throw new Error('The session is of another user')
      return true
    },

    openSession(session: Session, verifiedHash: string): boolean {
      return addSessionIfUnchanged.run({ ...session, verifiedHash }).changes === 1
    },

    rehash(userId: string, from: string, to: string): void {
      replaceHash.run(to, userId, from)
    },

    changePassword(session: Session, verifiedHash: string, newHash: string): User | undefined {
      const { userId, createdAt } = session
      if (setHash.run(newHash, createdAt, userId, verifiedHash).changes === 0) return undefined
      deleteSessions.run(userId, null)
      addSession.run(session)
      const row = readUser.get(userId)
      return row && toUser(row)
    },

    endSession: (userId: string, id: string): boolean => deleteSession.run(id, userId).changes === 1,

    endSessions(userId: string, exceptId: string | null): boolean {
      deleteSessions.run(userId, exceptId)
      return readUser.get(userId) !== undefined
    },

    updateUser(
      id: string,
      changes: UserChanges,
      at: number,
      { endSessions, onlyEnabled }: UpdateOptions,
    ): User | 'emailTaken' | undefined {
      const set = { ...changedColumns(changes), updated_at: at }
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
      if (endSessions) deleteSessions.run(id, null)
      const row = readUser.get(id)
      return row && toUser(row)
    },

    /** @param users key and moment in turn. */
    noteLastRequests(users: Float64Array, sessions: readonly SessionMoment[]): void {
      for (let index = 0; index < users.length; index += 2) {
        const [key, at] = [users[index], users[index + 1]]
        if (raiseUser.run(at, key).changes === 0) noteFirst.run(at, key)
      }
      for (const moment of sessions) raiseSession.run(moment)
    },
  }
}

export type Operations = ReturnType<typeof prepareOperations>
