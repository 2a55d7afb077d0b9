/** What the store runs for API keys. The writer thread of SQLite imports this module, and with it no schemas and no services. */
import type { AuditEvent } from '#core/audit-log/event'
import { recordStatement } from '#core/audit-log/stored-events'
import type { ApiKey } from '#core/auth/api-key'
import {
  API_KEY_COLUMNS,
  type ApiKeyRow,
  type ApiKeysTable,
  EXPIRED_KEPT,
  toApiKey,
} from '#core/auth/key-rows'
import { type ActingSession, lockForSession } from '#core/auth/stored-sessions'
import { refusalOf, type UserRefusal } from '#core/users/refusals'
import { lockUser } from '#core/users/user-locks'
import { firstRow, type Query, query, type Steps, USER_KEY } from '#storage/operations/operation'
import { endsAccess, invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import { type FeatureStore, type StoredFeature, table } from '#storage/stored-feature'

/** Keys of one user, expired ones included. */
const MAX_KEYS = 50

export interface StoredApiKey extends ApiKey {
  readonly digest: string
}

/**
 * Locks the user, so that concurrent calls count one after the other. The session must still exist: a new password, for example, has
 * ended it, and would not end the key.
 */
function* addApiKey(
  { id, name, digest, prefix, scopes, createdAt, expiresAt }: StoredApiKey,
  session: ActingSession,
  event: AuditEvent,
): Steps<Write<'added' | 'tooManyApiKeys' | 'sessionNotFound' | UserRefusal>> {
  const { userId } = event
  const refused = yield* lockForSession(userId, session)
  if (refused !== null) return refusedFor(userId, refused)
  const added = yield* firstRow({
    text: `INSERT INTO api_keys (id, user_key, digest, name, prefix, scopes, created_at, expires_at, last_used_at)
      SELECT $1, key, $3, $4, $5, $6, $7, $8, 0 FROM users
      WHERE id = $2 AND (SELECT count(*) FROM api_keys WHERE user_key = users.key) < ${MAX_KEYS} RETURNING id`,
    values: [id, userId, digest, name, prefix, JSON.stringify(scopes), createdAt, expiresAt],
  })
  if (added === undefined) return invalidatesNothing('tooManyApiKeys')
  yield recordStatement(event)
  return invalidatesNothing('added')
}

/** @param onlyEnabled whether the user must be enabled. */
function* revokeApiKey(
  id: string,
  event: AuditEvent,
  onlyEnabled: boolean,
): Steps<Write<'revoked' | 'apiKeyNotFound' | UserRefusal>> {
  const { userId } = event
  const refused = refusalOf(yield* lockUser(userId), { onlyEnabled })
  if (refused !== null) return refusedFor(userId, refused)
  const revoked = yield* firstRow({
    text: 'DELETE FROM api_keys WHERE id = $1 AND user_key = (SELECT key FROM users WHERE id = $2) RETURNING id',
    values: [id, userId],
  })
  // A request that has revoked it may still wait for other processes.
  if (revoked === undefined) return endsAccess(userId, 'apiKeyNotFound')
  yield recordStatement(event)
  return endsAccess(userId, 'revoked')
}

/** The keys of a user, newest first. */
const listApiKeys = (userId: string): Query<readonly ApiKey[]> =>
  query(
    {
      name: 'api-keys',
      text: `SELECT ${API_KEY_COLUMNS.join(', ')} FROM api_keys
        WHERE user_key = ${USER_KEY} ORDER BY id DESC LIMIT ${MAX_KEYS}`,
      values: [userId],
    },
    (found: readonly ApiKeyRow[]) => found.map(toApiKey),
  )

export const storedApiKeys = {
  name: 'api-keys',
  module: import.meta.url,
  migrations: {
    '0001_api_keys': {
      sql: ({ text, keyType }) => [
        `create table "api_keys" (
          "id" ${text} primary key,
          "user_key" ${keyType} not null references "users" ("key") on delete cascade,
          "digest" ${text} not null unique,
          "name" text not null,
          "prefix" text not null,
          "scopes" text not null,
          "created_at" bigint not null,
          "expires_at" bigint,
          "last_used_at" bigint not null
        )`,
        'create index "api_keys_by_user_key" on "api_keys" ("user_key", "id")',
        'create index "api_keys_by_expires_at" on "api_keys" ("expires_at")',
      ],
    },
  },
  tables: {
    api_keys: table<ApiKeysTable>({
      owner: 'user_key',
      key: 'id',
      updatedAt: 'last_used_at',
      grantsAccess: { type: 'api-key.revoked', detail: 'apiKey' },
      cleanUp: { column: 'expires_at', after: EXPIRED_KEPT },
    }),
  },
  operations: { addApiKey, revokeApiKey },
  reads: { listApiKeys },
} satisfies StoredFeature

export type ApiKeyStore = FeatureStore<typeof storedApiKeys.operations, typeof storedApiKeys.reads>
