/** Every write: one statement, or a transaction where one statement would not see what another instance just did. */
import pg from 'pg'
import type { SessionMoment, UserMoment } from '../../auth/last-requests.ts'
import type { NewUser, Session } from '../../auth/session.ts'
import { searchKey, type User, type UserChanges } from '../../users/user.ts'
import type { UpdateOptions } from '../../users/user-store.ts'
import { changedColumns, selectUser, toUser, type UserRow } from '../rows.ts'
import type { ChangeFeed } from './change-feed.ts'
import type { Database, Run, Statement } from './database.ts'

const isEmailTaken = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === '23505' && error.constraint === 'users_by_email'

const ADD_USER = `WITH added AS (
    INSERT INTO users (id, email, password_hash, first_name, last_name, first_name_key, last_name_key,
                       email_verified, disabled, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT (email) DO NOTHING
    RETURNING key
  )
  INSERT INTO sessions (id, user_key, created_at, expires_at, last_request_at)
  SELECT $12, key, $13, $14, $15 FROM added RETURNING user_key`

/** Locks the user: whoever changes them at this moment, and ends their sessions, either comes before or sees this one. */
const OPEN_SESSION = `WITH found AS (
    SELECT key FROM users WHERE id = $1 AND password_hash = $2 AND disabled = 0 FOR SHARE
  )
  INSERT INTO sessions (id, user_key, created_at, expires_at, last_request_at)
  SELECT $3, key, $4, $5, $6 FROM found RETURNING user_key`

const REHASH = 'UPDATE users SET password_hash = $1 WHERE id = $2 AND password_hash = $3'

const END_SESSIONS = 'DELETE FROM sessions WHERE user_key = (SELECT key FROM users WHERE id = $1)'

/** In the order of the rows' numbers, as every instance does: two that note the same users cannot deadlock. */
const NOTE_USERS = `INSERT INTO last_requests (user_key, at)
  SELECT key, max(noted.at) FROM unnest($1::bigint[], $2::bigint[]) AS noted (user_key, at)
  JOIN users ON key = noted.user_key GROUP BY key ORDER BY key
  ON CONFLICT (user_key) DO UPDATE SET at = excluded.at WHERE last_requests.at < excluded.at`

const NOTE_SESSIONS = `WITH noted AS (
    SELECT id, max(at) AS at FROM unnest($1::text[], $2::bigint[]) AS given (id, at) GROUP BY id
  ), locked AS (
    SELECT sessions.id, noted.at FROM sessions JOIN noted USING (id) ORDER BY sessions.id FOR UPDATE OF sessions
  )
  UPDATE sessions SET last_request_at = GREATEST(last_request_at, locked.at) FROM locked WHERE sessions.id = locked.id`

/** An array of numbers as PostgreSQL reads it: pg's own way looks at each for quotes. */
const numbers = (values: readonly number[]): string => `{${values.join(',')}}`

const updateStatement = (
  id: string,
  changes: UserChanges,
  at: number,
  { onlyEnabled }: UpdateOptions,
): Statement => {
  const set = { ...changedColumns(changes), updated_at: at }
  const assignments = Object.keys(set).map((column, index) => `${column} = $${index + 2}`)
  const where = onlyEnabled ? 'id = $1 AND disabled = 0' : 'id = $1'
  return {
    text: `UPDATE users SET ${assignments.join(', ')} WHERE ${where} RETURNING id`,
    values: [id, ...Object.values(set)],
  }
}

export const operations = (database: Database, changeFeed: ChangeFeed) => ({
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
      ],
    })
    return rows.length === 1
  },

  async openSession(session: Session, verifiedHash: string): Promise<boolean> {
    const { id, userId, createdAt, expiresAt, lastRequestAt } = session
    const values = [userId, verifiedHash, id, createdAt, expiresAt, lastRequestAt]
    const rows = await database.run({ name: 'open-session', text: OPEN_SESSION, values })
    return rows.length === 1
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
      if (options.endSessions) await run({ text: END_SESSIONS, values: [id] })
      await run(changeFeed.notification(id))
      const [row] = await run<UserRow>({ text: `${selectUser()} WHERE id = $1`, values: [id] })
      return row && toUser(row)
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
