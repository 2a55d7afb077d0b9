/** Every write: one statement, or a transaction where one statement would not see what another instance just did. */
import pg from 'pg'
import type { SessionMoment, UserMoment } from '../../auth/last-request-store.ts'
import type { NewUser, Session } from '../../auth/session.ts'
import { searchKey, type User, type UserChanges } from '../../users/user.ts'
import type { UpdateOptions } from '../../users/user-store.ts'
import { selectUser, toUser, type UserRow } from '../rows.ts'
import { notification } from './change-feed.ts'
import type { Database, Run } from './database.ts'
import {
  ADD_USER,
  END_SESSION,
  END_SESSIONS,
  NOTE_SESSIONS,
  NOTE_USERS,
  openStatement,
  REHASH,
  SET_HASH,
  updateStatement,
} from './statements.ts'

const isEmailTaken = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === '23505' && error.constraint === 'users_by_email'

/** An array of numbers as PostgreSQL reads it: pg's own way looks at each for quotes. */
const numbers = (values: readonly number[]): string => `{${values.join(',')}}`

const readUser = async (run: Run, id: string): Promise<User | undefined> => {
  const [row] = await run<UserRow>({ text: `${selectUser()} WHERE id = $1`, values: [id] })
  return row && toUser(row)
}

export const operations = (database: Database) => ({
  /** @returns false when the e-mail is taken. */
  async addUser(user: NewUser, session: Session): Promise<boolean> {
    if (session.userId !== user.id) throw new Error('The session is of another user')
    const rows = await database.run({
      name: 'add-user',
      text: ADD_USER,
      values: [
        user.id,
        user.email,
        user.passwordHash,
        user.firstName,
        user.lastName,
        searchKey(user.firstName),
        searchKey(user.lastName),
        Number(user.emailVerified),
        Number(user.disabled),
        user.createdAt,
        user.updatedAt,
        session.id,
        session.createdAt,
        session.expiresAt,
        session.lastRequestAt,
        session.ip,
        session.userAgent,
      ],
    })
    return rows.length === 1
  },

  async openSession(session: Session, verifiedHash: string): Promise<boolean> {
    return (await database.run(openStatement(session, verifiedHash))).length === 1
  },

  async changePassword(session: Session, verifiedHash: string, newHash: string): Promise<User | undefined> {
    const { userId, createdAt } = session
    return database.transaction(async run => {
      const changed = await run({ text: SET_HASH, values: [newHash, createdAt, userId, verifiedHash] })
      if (changed.length === 0) return undefined
      await run({ text: END_SESSIONS, values: [userId, null] })
      await run(openStatement(session, newHash))
      await run(notification([userId]))
      return readUser(run, userId)
    })
  },

  async endSession(userId: string, id: string): Promise<boolean> {
    return database.transaction(async run => {
      if ((await run({ text: END_SESSION, values: [userId, id] })).length === 0) return false
      await run(notification([userId]))
      return true
    })
  },

  async endSessions(userId: string, exceptId: string | null): Promise<boolean> {
    return database.transaction(async run => {
      // Whoever opens a session holds this lock: it is open already, or comes after.
      const found = await run({
        text: 'SELECT key FROM users WHERE id = $1 FOR NO KEY UPDATE',
        values: [userId],
      })
      if (found.length === 0) return false
      await run({ text: END_SESSIONS, values: [userId, exceptId] })
      await run(notification([userId]))
      return true
    })
  },

  async rehash(userId: string, from: string, to: string): Promise<void> {
    await database.run({ name: 'rehash', text: REHASH, values: [to, userId, from] })
  },

  /** Tells the other instances in the same transaction. */
  async updateUser(
    id: string,
    changes: UserChanges,
    at: number,
    options: UpdateOptions,
  ): Promise<User | 'emailTaken' | undefined> {
    const update = async (run: Run): Promise<User | 'emailTaken' | undefined> => {
      try {
        if ((await run(updateStatement(id, changes, at, options))).length === 0) return undefined
      } catch (error) {
        if (isEmailTaken(error)) return 'emailTaken'
        throw error
      }
      // A statement of its own: it sees the sessions of those who held the user's lock until now.
      if (options.endSessions) await run({ text: END_SESSIONS, values: [id, null] })
      await run(notification([id]))
      return readUser(run, id)
    }
    return database.transaction(update)
  },

  async noteLastRequests(users: readonly UserMoment[], sessions: readonly SessionMoment[]): Promise<void> {
    if (users.length > 0) {
      const values = [numbers(users.map(({ key }) => key)), numbers(users.map(({ at }) => at))]
      await database.run({ name: 'note-users', text: NOTE_USERS, values })
    }
    if (sessions.length > 0) {
      const values = [sessions.map(({ id }) => id), numbers(sessions.map(({ at }) => at))]
      await database.run({ name: 'note-sessions', text: NOTE_SESSIONS, values })
    }
  },
})
