/** What the store runs for admin keys. The writer thread of SQLite imports this module, and with it no schemas and no services. */
import type { AuditEvent } from '#core/audit-log/event'
import { recordStatement } from '#core/audit-log/stored-events'
import { type AdminKey, MAX_ADMIN_KEYS, missingScopes, type PresentedAdminKey } from '#core/auth/admin-key'
import {
  ADMIN_KEY_COLUMNS,
  type AdminKeyRow,
  type AdminKeysTable,
  EXPIRED_KEPT,
  toAdminKey,
} from '#core/auth/key-rows'
import { endImpersonatedSessions } from '#core/auth/stored-keys'
import { firstRow, type Query, query, type Statement, type Steps } from '#storage/operations/operation'
import { endsAccess, invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import { type StoredFeature, table } from '#storage/stored-feature'

export interface StoredAdminKey extends AdminKey {
  readonly digest: string
}

/** Concerns no user. */
type KeyEvent = AuditEvent<null>

/**
 * Creations and revocations run one after the other: the bound of the keys is exact, no key is created by one that is being revoked,
 * and their events are in order.
 */
const LOCK: Statement = {
  text: ({ lockByName }) => lockByName('$1'),
  values: ['admin_keys'],
}

/** @param creatorId the key of the store that creates it; `null`: a root key, or the operator. */
function* addAdminKey(
  { id, name, digest, prefix, scopes, createdAt, expiresAt, createdBy }: StoredAdminKey,
  creatorId: string | null,
  event: KeyEvent,
): Steps<Write<'added' | 'creatorRevoked' | 'tooManyAdminKeys'>> {
  yield LOCK
  if (creatorId !== null) {
    const creator = yield* firstRow({ text: 'SELECT id FROM admin_keys WHERE id = $1', values: [creatorId] })
    if (creator === undefined) return refusedFor(creatorId, 'creatorRevoked')
  }
  const added = yield* firstRow({
    text: `INSERT INTO admin_keys (id, digest, name, prefix, scopes, created_at, expires_at, last_used_at, created_by)
      SELECT $1, $2, $3, $4, $5, $6, $7, 0, $8
      WHERE (SELECT count(*) FROM admin_keys) < ${MAX_ADMIN_KEYS} RETURNING id`,
    values: [id, digest, name, prefix, JSON.stringify(scopes), createdAt, expiresAt, createdBy],
  })
  if (added === undefined) return invalidatesNothing('tooManyAdminKeys')
  yield recordStatement(event)
  return invalidatesNothing('added')
}

/**
 * Revokes a key, and ends the impersonated sessions that it has opened.
 * @param revoker what the key may do that revokes it.
 * @returns the scopes of the key that the revoker does not have, if there are any.
 */
function* revokeAdminKey(
  id: string,
  revoker: Pick<PresentedAdminKey, 'scopes'>,
  event: KeyEvent,
): Steps<Write<'revoked' | 'adminKeyNotFound' | { readonly missing: readonly string[] }>> {
  yield LOCK
  const found = yield* firstRow<{ scopes: string }>({
    text: 'SELECT scopes FROM admin_keys WHERE id = $1',
    values: [id],
  })
  // A request that has revoked it may still wait for other processes.
  if (found === undefined) return endsAccess(id, 'adminKeyNotFound')
  const missing = missingScopes(revoker, JSON.parse(found.scopes) as string[])
  if (missing.length > 0) return invalidatesNothing({ missing })
  yield { text: 'DELETE FROM admin_keys WHERE id = $1', values: [id] }
  const userIds = yield* endImpersonatedSessions(id)
  yield recordStatement(event)
  return endsAccess([id, ...userIds], 'revoked')
}

/** Newest first. */
const listAdminKeys = (): Query<readonly AdminKey[]> =>
  query(
    {
      name: 'admin-keys',
      text: `SELECT ${ADMIN_KEY_COLUMNS.join(', ')} FROM admin_keys ORDER BY id DESC`,
      values: [],
    },
    (found: readonly AdminKeyRow[]) => found.map(toAdminKey),
  )

export const storedAdminKeys = {
  name: 'admin-keys',
  module: import.meta.url,
  migrations: {
    '0001_admin_keys': {
      sql: ({ text }) => [
        `create table "admin_keys" (
          "id" ${text} primary key,
          "digest" ${text} not null unique,
          "name" text not null,
          "prefix" text not null,
          "scopes" text not null,
          "created_at" bigint not null,
          "expires_at" bigint,
          "last_used_at" bigint not null,
          "created_by" text
        )`,
        'create index "admin_keys_by_expires_at" on "admin_keys" ("expires_at")',
      ],
    },
    // Keys from before `users:identity` keep what `users:write` allowed.
    '0002_users_identity': {
      sql: () => [
        {
          text: 'update "admin_keys" set "scopes" = replace("scopes", $1, $2) where "scopes" like $3',
          values: ['"users:write"', '"users:write","users:identity"', '%"users:write"%'],
        },
      ],
    },
  },
  tables: {
    admin_keys: table<AdminKeysTable>({
      owner: null,
      key: 'id',
      updatedAt: 'last_used_at',
      cleanUp: { column: 'expires_at', after: EXPIRED_KEPT },
    }),
  },
  operations: { addAdminKey, revokeAdminKey },
  reads: { listAdminKeys },
} satisfies StoredFeature
