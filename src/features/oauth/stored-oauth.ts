/** What the store has of the authorization server: tables, migrations, and how authentication finds grants and clients. */
import type { AccountFeature } from '#core/store/account-feature'
import { type Query, query } from '#storage/operations/operation'
import { table } from '#storage/stored-feature'
import { clientOperations, clientReads } from './stored-clients.ts'
import { deviceOperations, deviceReads } from './stored-devices.ts'
import { grantOperations, grantReads } from './stored-grants.ts'
import { requestOperations, requestReads } from './stored-requests.ts'
import { resourceOperations, resourceReads } from './stored-resources.ts'
import type {
  ClientsTable,
  DeviceRequestsTable,
  GrantsTable,
  RequestsTable,
  ResourcesTable,
  SignInsTable,
  UsedIdsTable,
} from './stored-rows.ts'
import { signInOperations, signInReads } from './stored-sign-ins.ts'
import { usedIdOperations } from './stored-used-ids.ts'

const NOT_REVOKED = 'NOT EXISTS (SELECT 1 FROM oauth_used_ids WHERE oauth_used_ids.id = $2)'

/** A grant whose session has ended is not found: so whatever ends a session ends the grant, too. */
const GRANT = `SELECT oauth_grants.user_key, client_id AS grant_client, scopes AS grant_scopes,
    oauth_grants.expires_at AS grant_expires_at, sessions.expires_at AS grant_session_expires_at,
    sessions.last_request_at AS grant_session_used_at
  FROM oauth_grants LEFT JOIN sessions ON sessions.id = session_id
  WHERE oauth_grants.id = $1 AND (session_id IS NULL OR sessions.id IS NOT NULL)
    AND EXISTS (SELECT 1 FROM oauth_clients WHERE oauth_clients.id = client_id AND deleted_at = 0 AND is_blocked = 0)
    AND ${NOT_REVOKED}`

const CLIENT = `SELECT admin_scopes, metadata FROM oauth_clients WHERE id = $1 AND deleted_at = 0 AND is_blocked = 0
  AND ${NOT_REVOKED}`

/** Whether a client exists, and its token was not revoked. */
const isClientToken = (clientId: string, tokenId: string): Query<boolean> =>
  query(
    { name: 'client-token', text: CLIENT, values: [clientId, tokenId] },
    (found: readonly unknown[]) => found.length > 0,
  )

/**
 * Whether a grant of an enabled user is valid, with the session that it ends with, and its token was not revoked.
 * @param idleSince when the session must have been used.
 */
const isGrantToken = (
  grantId: string,
  tokenId: string,
  userId: string,
  now: number,
  idleSince: number,
): Query<boolean> =>
  query(
    {
      name: 'grant-token',
      text: `SELECT 1 AS found FROM (${GRANT}) AS live JOIN users ON users.key = live.user_key
        WHERE users.id = $3 AND disabled = 0 AND grant_expires_at > $4 AND (grant_session_expires_at IS NULL
          OR (grant_session_expires_at > $4 AND grant_session_used_at > $5))`,
      values: [grantId, tokenId, userId, now, idleSince],
    },
    (found: readonly unknown[]) => found.length > 0,
  )

export const storedOAuth = {
  name: 'oauth',
  module: import.meta.url,
  migrations: {
    '0001_oauth': {
      sql: ({ text, keyType }) => [
        `create table "oauth_clients" (
          "id" ${text} primary key,
          "metadata" text not null,
          "admin_scopes" text not null,
          "secret_digest" ${text},
          "former_digest" ${text},
          "former_expires_at" bigint,
          "created_at" bigint not null,
          "updated_at" bigint not null,
          "deleted_at" bigint not null
        )`,
        'create index "oauth_clients_by_deleted_at" on "oauth_clients" ("deleted_at")',
        `create table "oauth_resources" (
          "id" ${text} primary key,
          "identifier" ${text} not null unique,
          "name" text not null,
          "scopes" text not null,
          "client_ids" text not null,
          "created_at" bigint not null,
          "updated_at" bigint not null
        )`,
        `create table "oauth_used_ids" (
          "id" ${text} primary key,
          "expires_at" bigint not null
        )`,
        'create index "oauth_used_ids_by_expires_at" on "oauth_used_ids" ("expires_at")',
        `create table "oauth_requests" (
          "id" ${text} primary key,
          "client_id" ${text} not null,
          "parameters" text not null,
          "state" ${text} not null,
          "code_digest" ${text} not null,
          "user_id" ${text},
          "decision" text,
          "grant_id" ${text},
          "expires_at" bigint not null
        )`,
        'create index "oauth_requests_by_code" on "oauth_requests" ("code_digest")',
        'create index "oauth_requests_by_expires_at" on "oauth_requests" ("expires_at")',
        `create table "oauth_grants" (
          "id" ${text} primary key,
          "user_key" ${keyType} not null references "users" ("key") on delete cascade,
          "client_id" ${text} not null,
          "scopes" text not null,
          "resource" ${text},
          "session_id" ${text},
          "authenticated_at" bigint not null,
          "secret" text,
          "generation" integer not null,
          "predecessor" integer not null,
          "issued" integer not null,
          "issued_at" bigint not null,
          "is_presented" integer not null,
          "created_at" bigint not null,
          "used_at" bigint not null,
          "expires_at" bigint not null
        )`,
        'create index "oauth_grants_by_user" on "oauth_grants" ("user_key", "client_id")',
        'create index "oauth_grants_by_client" on "oauth_grants" ("client_id", "id")',
        'create index "oauth_grants_by_expires_at" on "oauth_grants" ("expires_at")',
      ],
    },
    '0002_organizations': {
      sql: ({ text }) => [`alter table "oauth_grants" add column "organization" ${text}`],
    },
    '0003_clients': {
      sql: ({ text }) => [
        `alter table "oauth_clients" add column "origin" ${text} not null default 'administrator'`,
        'alter table "oauth_clients" add column "used_at" bigint not null default 0',
        `alter table "oauth_clients" add column "document_url" ${text}`,
        'alter table "oauth_clients" add column "is_blocked" integer not null default 0',
        'create index "oauth_clients_by_origin" on "oauth_clients" ("origin", "used_at")',
      ],
    },
    '0004_device_requests': {
      sql: ({ text }) => [
        `create table "oauth_device_requests" (
          "id" ${text} primary key,
          "user_code_digest" ${text} not null unique,
          "requester" ${text} not null,
          "parameters" text not null,
          "state" ${text} not null,
          "user_id" ${text},
          "decision" text,
          "polled_at" bigint not null,
          "expires_at" bigint not null
        )`,
        'create index "oauth_device_requests_by_requester" on "oauth_device_requests" ("requester")',
        'create index "oauth_device_requests_by_expires_at" on "oauth_device_requests" ("expires_at")',
      ],
    },
    '0005_bound_grants': {
      sql: ({ text }) => [`alter table "oauth_grants" add column "jkt" ${text}`],
    },
    '0006_sign_ins': {
      sql: ({ text }) => [
        `create table "oauth_sign_ins" (
          "id" ${text} primary key,
          "session_id" ${text} not null,
          "client_id" ${text} not null,
          "user_id" ${text} not null,
          "attempts" integer not null,
          "retry_at" bigint not null,
          "expires_at" bigint not null
        )`,
        'create index "oauth_sign_ins_by_user" on "oauth_sign_ins" ("user_id")',
        'create index "oauth_sign_ins_by_retry" on "oauth_sign_ins" ("retry_at")',
        'create index "oauth_sign_ins_by_expires_at" on "oauth_sign_ins" ("expires_at")',
      ],
    },
  },
  tables: {
    oauth_clients: table<ClientsTable>({ owner: null, key: 'id', updatedAt: 'updated_at' }),
    oauth_resources: table<ResourcesTable>({
      owner: null,
      key: 'id',
      updatedAt: 'updated_at',
      unique: 'identifier',
    }),
    oauth_used_ids: table<UsedIdsTable>({
      owner: null,
      key: 'id',
      cleanUp: { column: 'expires_at', after: 0 },
    }),
    oauth_requests: table<RequestsTable>({
      owner: null,
      key: 'id',
      cleanUp: { column: 'expires_at', after: 0 },
    }),
    oauth_device_requests: table<DeviceRequestsTable>({
      owner: null,
      key: 'id',
      // A device that comes late learns that its code has expired.
      cleanUp: { column: 'expires_at', after: 600_000 },
    }),
    oauth_sign_ins: table<SignInsTable>({
      owner: null,
      key: 'id',
      // A day after the session, which may have ended at its latest: attempts go on.
      cleanUp: { column: 'expires_at', after: 86_400_000 },
    }),
    oauth_grants: table<GrantsTable>({
      owner: 'user_key',
      key: 'id',
      updatedAt: 'used_at',
      grantsAccess: { type: 'grant.revoked', detail: 'grant' },
      endsWithSessions: true,
      cleanUp: { column: 'expires_at', after: 0 },
    }),
  },
  clientTokens: { grant: GRANT, client: CLIENT },
  operations: {
    ...clientOperations,
    ...resourceOperations,
    ...usedIdOperations,
    ...requestOperations,
    ...deviceOperations,
    ...signInOperations,
    ...grantOperations,
  },
  reads: {
    ...clientReads,
    ...resourceReads,
    ...requestReads,
    ...deviceReads,
    ...signInReads,
    ...grantReads,
    isClientToken,
    isGrantToken,
  },
} satisfies AccountFeature
