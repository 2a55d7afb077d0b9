/** Sign-ups and sign-ins, each one statement without a transaction of its own; and the lookups of sessions, API keys and admin keys. */

import { parameters, valuesOf } from '#storage/operations/parameters'
import type { Database, Statement } from '#storage/postgres/database'
import { POSTGRES } from '#storage/postgres/dialect'
import type { AuditEvent } from '../audit-log/event.ts'
import { eventValues } from '../audit-log/stored-events.ts'
import type { AdminKey } from '../auth/admin-key.ts'
import type { FoundApiKey } from '../auth/api-key.ts'
import {
  ADMIN_KEY_COLUMNS,
  type AdminKeyRow,
  type ApiKeyRow,
  toAdminKey,
  toApiKey,
} from '../auth/key-rows.ts'
import type { Session } from '../auth/session.ts'
import { refusalOf, type UserRefusal, type UserState } from '../users/refusals.ts'
import type { NewUser } from '../users/user.ts'
import {
  AFTER_IDS,
  EMAIL_TOKEN_COLUMNS,
  EVENT_COLUMNS,
  emailTokenColumns,
  factorsColumn,
  SESSION_COLUMNS,
  selectUser,
  sessionColumns,
  toSession,
  toUser,
  USER_COLUMNS,
  type UserRow,
  userColumns,
} from '../users/user-rows.ts'
import type { AccountExtras, FoundSession, VerifiedState } from './stores.ts'

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

/** The numbers of the first parameters of the session and of the event. */
const OPENED = 4
const SIGNED_IN = OPENED + SESSION_COLUMNS.length

/** Locks the user. A concurrent change that revokes the user's sessions is either committed before, or sees this session. */
const OPEN_SESSION = `WITH found AS (
    SELECT key, disabled, CASE WHEN CAST($2 AS text) IS NULL
        OR password_hash = $2 AND factors IS NOT DISTINCT FROM $3 THEN 1 ELSE 0 END AS verified
    FROM users WHERE id = $1 AND ${POSTGRES.inSharedTurn('$1')} ${POSTGRES.forShare}
  ), opened AS (
    INSERT INTO sessions (user_key, ${SESSION_COLUMNS.join(', ')})
    SELECT key, ${parameters(SESSION_COLUMNS, OPENED)} FROM found WHERE disabled = 0 AND verified = 1
  ), recorded AS (
    INSERT INTO events (${EVENT_COLUMNS.join(', ')})
    SELECT ${parameters(EVENT_COLUMNS, SIGNED_IN)} FROM found WHERE disabled = 0 AND verified = 1
  )
  SELECT disabled, verified FROM found`

const openSessionStatement = (
  session: Session,
  verified: VerifiedState | null,
  event: AuditEvent,
): Statement => ({
  name: 'open-session',
  text: OPEN_SESSION,
  values: [
    session.userId,
    verified?.passwordHash ?? null,
    verified && factorsColumn(verified.factors),
    ...valuesOf(SESSION_COLUMNS, sessionColumns(session)),
    ...eventValues(event),
  ],
})

interface FoundRow extends UserRow {
  readonly key: number
  readonly session_id: string
  readonly opened_at: number
  readonly expires_at: number
  readonly session_last_request_at: number
  readonly ip: string | null
  readonly user_agent: string | null
  readonly impersonated_by: string | null
  readonly authenticated_at: number | null
  readonly method: string | null
  readonly amr: string | null
}

/** @param condition selects the sessions. */
const findSessions = (condition: string): string => `${selectUser('key', 'session.*')} JOIN (
    SELECT id AS session_id, user_key, created_at AS opened_at, expires_at, last_request_at AS session_last_request_at,
           ip, user_agent, impersonated_by, authenticated_at, method, amr
    FROM sessions WHERE ${condition}
  ) AS session ON session.user_key = users.key`

const FIND_SESSION = findSessions('id = $1')

const FIND_NEWEST_SESSIONS = `${findSessions('id < $1 ORDER BY id DESC LIMIT $2')} ORDER BY session_id DESC`

const toFound = (row: FoundRow): FoundSession => ({
  session: toSession(
    { ...row, id: row.session_id, created_at: row.opened_at, last_request_at: row.session_last_request_at },
    row.id,
  ),
  user: toUser(row),
  userKey: row.key,
})

interface FoundApiKeyRow extends UserRow, Omit<ApiKeyRow, 'id' | 'created_at'> {
  readonly key: number
  readonly api_key_id: string
  readonly api_key_created_at: number
}

const FIND_API_KEY = `${selectUser('key', 'api_key.*')} JOIN (
    SELECT id AS api_key_id, user_key, created_at AS api_key_created_at, name, prefix, scopes, expires_at, last_used_at
    FROM api_keys WHERE digest = $1
  ) AS api_key ON api_key.user_key = users.key`

const toFoundApiKey = (row: FoundApiKeyRow): FoundApiKey => ({
  apiKey: toApiKey({ ...row, id: row.api_key_id, created_at: row.api_key_created_at }),
  user: toUser(row),
  userKey: row.key,
})

const FIND_ADMIN_KEY = `SELECT ${ADMIN_KEY_COLUMNS.join(', ')} FROM admin_keys WHERE digest = $1`

export const hotOperations = (database: Database) => ({
  /** @returns false if the e-mail is taken. */
  async addUser(user: NewUser, event: AuditEvent, extras: AccountExtras): Promise<boolean> {
    if (extras.session && extras.session.userId !== user.id)
      throw new Error('The session belongs to another user')
    return (await database.writeUncached(addUserStatement(user, event, extras))).length === 1
  },

  async openSession(
    session: Session,
    verified: VerifiedState | null,
    event: AuditEvent,
  ): Promise<'opened' | UserRefusal> {
    const [user] = await database.writeUncached<UserState>(openSessionStatement(session, verified, event))
    return refusalOf(user, { onlyEnabled: true }) ?? 'opened'
  },

  /** @param onStart called when the statement has a connection. */
  async findSession(id: string, onStart?: () => void): Promise<FoundSession | undefined> {
    const statement = { name: 'session', text: FIND_SESSION, values: [id] }
    const [row] = await database.readByKey<FoundRow>(statement, onStart)
    return row && toFound(row)
  },

  async findNewestSessions(before: string | null, limit: number): Promise<readonly FoundSession[]> {
    const values = [before ?? AFTER_IDS, limit]
    return (await database.read<FoundRow>({ text: FIND_NEWEST_SESSIONS, values })).map(toFound)
  },

  /** @param onStart called when the statement has a connection. */
  async findApiKey(digest: string, onStart?: () => void): Promise<FoundApiKey | undefined> {
    const statement = { name: 'api-key', text: FIND_API_KEY, values: [digest] }
    const [row] = await database.readByKey<FoundApiKeyRow>(statement, onStart)
    return row && toFoundApiKey(row)
  },

  /** @param onStart called when the statement has a connection. */
  async findAdminKey(digest: string, onStart?: () => void): Promise<AdminKey | undefined> {
    const statement = { name: 'admin-key', text: FIND_ADMIN_KEY, values: [digest] }
    const [row] = await database.readByKey<AdminKeyRow>(statement, onStart)
    return row && toAdminKey(row)
  },
})
