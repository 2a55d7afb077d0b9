/** Opening a session, and the look-up of sessions and keys, each with one round trip to PostgreSQL. */
import { parameters, valuesOf } from '#storage/operations/parameters'
import type { Database, Statement } from '#storage/postgres/database'
import { POSTGRES } from '#storage/postgres/dialect'
import type { AuditEvent } from '../audit-log/event.ts'
import { EVENT_COLUMNS } from '../audit-log/event-rows.ts'
import { eventValues } from '../audit-log/stored-events.ts'
import type { FoundSession } from '../store/store.ts'
import { refusalOf, type UserRefusal, type UserState } from '../users/refusals.ts'
import { selectUser, toUser, type UserRow } from '../users/user-rows.ts'
import type { AdminKey } from './admin-key.ts'
import type { FoundApiKey } from './api-key.ts'
import {
  type ClientRow,
  type ClientTokenQueries,
  type FoundClient,
  type FoundGrant,
  type GrantRow,
  toClient,
  toGrant,
} from './client-tokens.ts'
import { ADMIN_KEY_COLUMNS, type AdminKeyRow, type ApiKeyRow, toAdminKey, toApiKey } from './key-rows.ts'
import type { Session } from './session.ts'
import { SESSION_COLUMNS, type SessionRow, sessionColumns, toSession } from './session-rows.ts'
import { OPENING_STATE, openingValues, type VerifiedState } from './stored-sessions.ts'

/** The numbers of the first parameters of the session and of the event. */
const OPENED = 4
const SIGNED_IN = OPENED + SESSION_COLUMNS.length

/** Locks the user. A concurrent change that revokes the user's sessions is either committed before, or sees this session. */
const OPEN_SESSION = `WITH found AS (
    SELECT key, ${OPENING_STATE}
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
    ...openingValues(session, verified),
    ...valuesOf(SESSION_COLUMNS, sessionColumns(session)),
    ...eventValues(event),
  ],
})

/** A session with its user: columns that both have are renamed. */
interface FoundRow extends UserRow, Omit<SessionRow, 'id' | 'created_at' | 'last_request_at' | 'network'> {
  readonly key: number
  readonly session_id: string
  readonly opened_at: number
  readonly session_last_request_at: number
}

const FIND_SESSION = `${selectUser('key', 'session.*')} JOIN (
    SELECT id AS session_id, user_key, created_at AS opened_at, expires_at, last_request_at AS session_last_request_at,
           ip, user_agent, impersonated_by, authenticated_at, method, amr
    FROM sessions WHERE id = $1
  ) AS session ON session.user_key = users.key`

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

type FoundGrantRow = UserRow & GrantRow & { readonly key: number }

const findGrantText = ({ grant }: ClientTokenQueries): string =>
  `${selectUser('key', 'found.*')} JOIN (${grant}) AS found ON found.user_key = users.key`

/** @param clientTokens `null`: there are none. */
export const sessionStatements = (database: Database, clientTokens: ClientTokenQueries | null) => ({
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

  async findApiKey(digest: string, onStart?: () => void): Promise<FoundApiKey | undefined> {
    const statement = { name: 'api-key', text: FIND_API_KEY, values: [digest] }
    const [row] = await database.readByKey<FoundApiKeyRow>(statement, onStart)
    return row && toFoundApiKey(row)
  },

  async findAdminKey(digest: string, onStart?: () => void): Promise<AdminKey | undefined> {
    const statement = { name: 'admin-key', text: FIND_ADMIN_KEY, values: [digest] }
    const [row] = await database.readByKey<AdminKeyRow>(statement, onStart)
    return row && toAdminKey(row)
  },

  async findGrant(id: string, tokenId: string, onStart?: () => void): Promise<FoundGrant | undefined> {
    if (clientTokens === null) return undefined
    const statement = { name: 'grant', text: findGrantText(clientTokens), values: [id, tokenId] }
    const [row] = await database.readByKey<FoundGrantRow>(statement, onStart)
    return row && { grant: toGrant(row), user: toUser(row), userKey: row.key }
  },

  async findClient(id: string, tokenId: string, onStart?: () => void): Promise<FoundClient | undefined> {
    if (clientTokens === null) return undefined
    const statement = { name: 'client', text: clientTokens.client, values: [id, tokenId] }
    const [row] = await database.readByKey<ClientRow>(statement, onStart)
    return row && toClient(row)
  },
})
