/** Writes of users: one statement, or a transaction where one statement would not see a concurrent change. */
import pg from 'pg'
import type { AccountExtras, NewUser } from '../../accounts/account-store.ts'
import type { AuditEvent } from '../../audit-log/event.ts'
import type { User, UserChanges } from '../../users/user.ts'
import type { UpdateOptions, UpdateRefusal, UserRefusal } from '../../users/user-store.ts'
import { refusalOf, updateRefusalOf, type VersionState } from '../refusals.ts'
import {
  changedColumns,
  EMAIL_TOKEN_COLUMNS,
  EVENT_COLUMNS,
  emailTokenColumns,
  SESSION_COLUMNS,
  selectUser,
  sessionColumns,
  toUser,
  USER_COLUMNS,
  type UserRow,
  userColumns,
} from '../rows.ts'
import { invalidates, refusedFor } from '../write.ts'
import type { Database, Run, Statement } from './database.ts'
import { eventValues, record, recordRemoval } from './event-operations.ts'
import { parameters, valuesOf } from './parameters.ts'
import { REVOKE_SESSIONS } from './session-operations.ts'
import { LOCK_TABLE, lockUser } from './user-locks.ts'

const isEmailTaken = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === '23505' && error.constraint === 'users_by_email'

/** Waits for a write of an e-mail. @returns its rows, or `emailTaken` if another user has the e-mail. */
export const unlessEmailTaken = async <Rows>(written: Promise<Rows>): Promise<Rows | 'emailTaken'> => {
  try {
    return await written
  } catch (error) {
    if (isEmailTaken(error)) return 'emailTaken'
    throw error
  }
}

/** Reads a user that the same transaction has changed. */
export const readChanged = async (run: Run, id: string): Promise<User> => {
  const [row] = await run<UserRow>({ text: `${selectUser()} WHERE id = $1`, values: [id] })
  return toUser(row as UserRow)
}

export const DELETE_TOKENS = 'DELETE FROM email_tokens WHERE user_key = (SELECT key FROM users WHERE id = $1)'

/** Keeps the IP addresses of administrators, which are not personal data of the user. */
const ERASE_IP_ADDRESSES = `UPDATE events SET ip = NULL WHERE user_id = $1 AND actor_type <> 'adminKey'`

/** The number of the first parameter of each row. */
const SESSION = 1 + USER_COLUMNS.length
const TOKEN = SESSION + SESSION_COLUMNS.length
const EVENT = TOKEN + EMAIL_TOKEN_COLUMNS.length

const ADD_USER = `WITH added AS (
    INSERT INTO users (${USER_COLUMNS.join(', ')}) VALUES (${parameters(USER_COLUMNS, 1)})
    ON CONFLICT (email) DO NOTHING
    RETURNING key
  ), opened AS (
    INSERT INTO sessions (user_key, ${SESSION_COLUMNS.join(', ')})
    SELECT key, ${parameters(SESSION_COLUMNS, SESSION)} FROM added WHERE $${SESSION}::text IS NOT NULL
  ), mailed AS (
    INSERT INTO email_tokens (user_key, ${EMAIL_TOKEN_COLUMNS.join(', ')})
    SELECT key, ${parameters(EMAIL_TOKEN_COLUMNS, TOKEN)} FROM added WHERE $${TOKEN}::text IS NOT NULL
  ), recorded AS (
    INSERT INTO events (${EVENT_COLUMNS.join(', ')}) SELECT ${parameters(EVENT_COLUMNS, EVENT)} FROM added
  )
  SELECT key FROM added`

const addUserStatement = (
  user: NewUser,
  event: AuditEvent,
  { session, emailToken }: AccountExtras,
): Statement => ({
  name: 'add-user',
  text: ADD_USER,
  values: [
    ...valuesOf(USER_COLUMNS, userColumns(user)),
    ...valuesOf(SESSION_COLUMNS, session && sessionColumns(session)),
    ...valuesOf(EMAIL_TOKEN_COLUMNS, emailToken && emailTokenColumns(emailToken)),
    ...eventValues(event),
  ],
})

/** Returns the {@link VersionState}, if the user exists. */
const updateStatement = (
  id: string,
  changes: UserChanges,
  at: number,
  { onlyEnabled, versions }: UpdateOptions,
): Statement => {
  const set = { ...changedColumns(changes), updated_at: at }
  const assignments = Object.keys(set).map((column, index) => `${column} = $${index + 3}`)
  const enabled = onlyEnabled ? 'AND found.disabled = 0' : ''
  return {
    text: `WITH found AS (
        SELECT key, disabled, $2::bigint[] IS NULL OR version = ANY($2) AS current
        FROM users WHERE id = $1 FOR NO KEY UPDATE
      ), changed AS (
        UPDATE users SET ${assignments.join(', ')}, version = users.version + 1 FROM found
        WHERE users.key = found.key AND found.current ${enabled}
      )
      SELECT disabled, current FROM found`,
    values: [id, versions, ...Object.values(set)],
  }
}

export const userOperations = (database: Database) => ({
  /** @returns false if the e-mail is taken. */
  async addUser(user: NewUser, event: AuditEvent, extras: AccountExtras): Promise<boolean> {
    if (extras.session && extras.session.userId !== user.id)
      throw new Error('The session belongs to another user')
    return (await database.writeUncached(addUserStatement(user, event, extras))).length === 1
  },

  async updateUser(
    id: string,
    changes: UserChanges,
    event: AuditEvent,
    options: UpdateOptions,
  ): Promise<User | UpdateRefusal> {
    return database.transaction<User | UpdateRefusal>(async run => {
      const rows = await unlessEmailTaken(run<VersionState>(updateStatement(id, changes, event.at, options)))
      const refused = rows === 'emailTaken' ? rows : updateRefusalOf(rows[0], options)
      if (refused !== null) return refusedFor(id, refused)
      // A separate statement: it sees the sessions of transactions that held the user's lock before.
      if (options.revokeSessions) await run({ text: REVOKE_SESSIONS, values: [id, null] })
      if (options.invalidateTokens) await run({ text: DELETE_TOKENS, values: [id] })
      await run(record(event))
      return invalidates(id, await readChanged(run, id))
    })
  },

  async removeUser(event: AuditEvent, verifiedHash: string | null): Promise<'removed' | UserRefusal> {
    const { userId } = event
    return database.transaction<'removed' | UserRefusal>(async run => {
      await run(LOCK_TABLE)
      const user = await lockUser(run, userId, verifiedHash, 'UPDATE')
      const refused = refusalOf(user, { onlyEnabled: verifiedHash !== null })
      if (refused !== null) return refusedFor(userId, refused)
      // Locks sessions in the order in which last requests are written. The cascade of the next statement has no defined order.
      await run({ text: REVOKE_SESSIONS, values: [userId, null] })
      await run({ text: 'DELETE FROM users WHERE id = $1', values: [userId] })
      await recordRemoval(run, event)
      await run({ text: ERASE_IP_ADDRESSES, values: [userId] })
      return invalidates(userId, 'removed')
    })
  },
})
