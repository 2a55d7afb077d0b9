/** Clients in the store. The writer thread of SQLite imports this module. */
import type { AuditEvent } from '#core/audit-log/event'
import { recordStatement } from '#core/audit-log/stored-events'
import { firstRow, type Query, query, rows, type Statement, type Steps } from '#storage/operations/operation'
import {
  endsAccess,
  invalidates,
  invalidatesNothing,
  refusedFor,
  type Write,
} from '#storage/operations/write'
import {
  type ClientMetadata,
  type ClientOrigin,
  MAX_CLIENTS,
  newClientMetadata,
  type StoredClient,
} from './client.ts'
import type { ClientsTable } from './stored-rows.ts'

/** Concerns no user. */
type ClientEvent = AuditEvent<null>

/** The bound of their number is exact. */
const LOCK: Statement = { text: ({ lockByName }) => lockByName('$1'), values: ['oauth_clients'] }

const columnsOf = ({ adminScopes, blocked: _, ...metadata }: ClientMetadata): readonly [string, string] => [
  JSON.stringify(metadata),
  JSON.stringify(adminScopes),
]

const HAS_GRANT = 'EXISTS (SELECT 1 FROM oauth_grants WHERE client_id = oauth_clients.id)'

/** Of an origin, with a limit. */
const OLDEST_UNUSED = `SELECT id FROM oauth_clients
  WHERE origin = $1 AND is_blocked = 0 AND NOT ${HAS_GRANT}
  ORDER BY used_at, id LIMIT`

/** Deletes the client that was unused for longest where there is no room for another one. @returns its id, or none. */
function* makeRoom(origin: ClientOrigin): Steps<readonly string[]> {
  const gone = yield* rows<{ id: string }>({
    text: `DELETE FROM oauth_clients WHERE id IN (${OLDEST_UNUSED} 1)
      AND (SELECT count(*) FROM oauth_clients WHERE origin = $1) >= ${MAX_CLIENTS} RETURNING id`,
    values: [origin],
  })
  return gone.map(({ id }) => id)
}

/** Adds a client. Where there are too many that nobody has checked, the one that was unused for longest goes. */
function* addClient(
  id: string,
  metadata: ClientMetadata,
  secretDigest: string | null,
  origin: ClientOrigin,
  event: ClientEvent,
): Steps<Write<'added' | 'tooManyClients'>> {
  yield LOCK
  const gone = origin === 'administrator' ? [] : yield* makeRoom(origin)
  const added = yield* firstRow({
    text: `INSERT INTO oauth_clients (id, metadata, admin_scopes, secret_digest, former_digest, former_expires_at,
        created_at, updated_at, deleted_at, origin, used_at)
      SELECT $1, $2, $3, $4, NULL, NULL, CAST($5 AS bigint), CAST($5 AS bigint), 0, $6, CAST($7 AS bigint)
      WHERE (SELECT count(*) FROM oauth_clients WHERE origin = $6) < ${MAX_CLIENTS} RETURNING id`,
    values: [
      ...[id, ...columnsOf(metadata), secretDigest, event.at],
      ...[origin, origin === 'administrator' ? 0 : event.at],
    ],
  })
  if (added === undefined) return invalidatesNothing('tooManyClients')
  yield recordStatement(event)
  return invalidates(gone, 'added')
}

/**
 * Keeps the metadata that a client has published.
 * @param event of a client that was not known before.
 * @returns whether the client may have tokens: it is not blocked, and not being deleted.
 */
function* keepDocumentClient(
  id: string,
  url: string,
  metadata: ClientMetadata,
  event: ClientEvent,
): Steps<Write<boolean>> {
  yield LOCK
  const found = yield* firstRow<Pick<ClientsTable, 'deleted_at' | 'is_blocked'>>({
    text: 'SELECT deleted_at, is_blocked FROM oauth_clients WHERE id = $1',
    values: [id],
  })
  if (found !== undefined && found.deleted_at + found.is_blocked > 0) return refusedFor(id, false)
  const gone = found === undefined ? yield* makeRoom('document') : []
  yield {
    text: `INSERT INTO oauth_clients (id, metadata, admin_scopes, secret_digest, former_digest, former_expires_at,
        created_at, updated_at, deleted_at, origin, used_at, document_url)
      VALUES ($1, $2, $3, NULL, NULL, NULL, $4, $4, 0, 'document', $4, $5)
      ON CONFLICT (id) DO UPDATE SET metadata = $2, updated_at = $4`,
    values: [id, ...columnsOf(metadata), event.at, url],
  }
  if (found === undefined) yield recordStatement(event)
  return invalidates([id, ...gone], true)
}

/** Removes a client that nobody has used since a time, and that has no grant. @returns whether it was one. */
function* removeUnusedClient(id: string, usedBefore: number, event: ClientEvent): Steps<Write<boolean>> {
  const gone = yield* firstRow({
    text: `DELETE FROM oauth_clients WHERE id = $1 AND origin <> 'administrator' AND used_at < $2
      AND NOT ${HAS_GRANT} RETURNING id`,
    values: [id, usedBefore],
  })
  if (gone === undefined) return invalidatesNothing(false)
  yield recordStatement(event)
  return invalidates(id, true)
}

/** Milliseconds. A client that everybody uses is not written with each grant. */
const USE_NOTED = 86_400_000

/** Notes that a client has got a grant, so that it is not removed as unused. */
export const noteUse = (id: string, now: number): Statement => ({
  text: `UPDATE oauth_clients SET used_at = $2 WHERE id = $1 AND origin <> 'administrator' AND used_at < $3`,
  values: [id, now, now - USE_NOTED],
})

/** @param updatedAt of the client that the change was made of: of two changes at once, one is not done. */
function* changeClient(
  id: string,
  updatedAt: number,
  metadata: ClientMetadata,
  event: ClientEvent,
): Steps<Write<boolean>> {
  const changed = yield* firstRow({
    text: `UPDATE oauth_clients SET metadata = $3, admin_scopes = $4, updated_at = $5, is_blocked = $6
      WHERE id = $1 AND updated_at = $2 AND deleted_at = 0 RETURNING id`,
    // Each change increases it, also within a millisecond.
    values: [
      ...[id, updatedAt, ...columnsOf(metadata), Math.max(event.at, updatedAt + 1)],
      Number(metadata.blocked),
    ],
  })
  if (changed === undefined) return refusedFor(id, false)
  yield recordStatement(event)
  return endsAccess(id, true)
}

/** @param formerExpiresAt when the current secret ends. */
function* rotateSecret(
  id: string,
  digest: string,
  formerExpiresAt: number,
  event: ClientEvent,
): Steps<Write<boolean>> {
  const rotated = yield* firstRow({
    text: `UPDATE oauth_clients SET former_digest = secret_digest, former_expires_at = $3, secret_digest = $2
      WHERE id = $1 AND deleted_at = 0 RETURNING id`,
    values: [id, digest, formerExpiresAt],
  })
  if (rotated === undefined) return refusedFor(id, false)
  yield recordStatement(event)
  // The secret before the former one has ended.
  return endsAccess(id, true)
}

/** Ends every token of the client. Its grants are removed afterwards. */
function* removeClient(id: string, event: ClientEvent): Steps<Write<boolean>> {
  const removed = yield* firstRow({
    text: 'UPDATE oauth_clients SET deleted_at = $2 WHERE id = $1 AND deleted_at = 0 RETURNING id',
    values: [id, Math.max(1, event.at)],
  })
  if (removed === undefined) return refusedFor(id, false)
  yield recordStatement(event)
  return endsAccess(id, true)
}

/** Removes a slice of the grants of a deleted client, and then the client. @returns whether the client is gone. */
function* removeGrantsOf(id: string, limit: number): Steps<Write<boolean>> {
  const removed = yield* rows({
    text: ({ forUpdateSkipLocked }) => `DELETE FROM oauth_grants WHERE id IN (
        SELECT id FROM oauth_grants WHERE client_id = $1 ORDER BY id LIMIT $2 ${forUpdateSkipLocked}
      ) RETURNING id`,
    values: [id, limit],
  })
  if (removed.length > 0) return invalidatesNothing(false)
  const gone = yield* firstRow({
    text: `DELETE FROM oauth_clients WHERE id = $1 AND deleted_at > 0
      AND NOT EXISTS (SELECT 1 FROM oauth_grants WHERE client_id = oauth_clients.id) RETURNING id`,
    values: [id],
  })
  return invalidates(id, gone !== undefined)
}

type ClientRow = Omit<ClientsTable, 'deleted_at' | 'used_at'>

const COLUMNS = `id, origin, metadata, admin_scopes, secret_digest, former_digest, former_expires_at, created_at,
  updated_at, document_url, is_blocked`

const clientOf = (row: ClientRow): StoredClient => ({
  // A row of a former release has fewer members.
  ...newClientMetadata(JSON.parse(row.metadata) as Omit<ClientMetadata, 'adminScopes' | 'blocked'>),
  id: row.id,
  origin: row.origin as ClientOrigin,
  documentUrl: row.document_url,
  blocked: row.is_blocked === 1,
  adminScopes: JSON.parse(row.admin_scopes) as string[],
  secretDigest: row.secret_digest,
  formerDigest: row.former_digest,
  formerSecretExpiresAt: row.former_expires_at,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})

const findClient = (id: string): Query<StoredClient | undefined> =>
  query(
    {
      name: 'client',
      text: `SELECT ${COLUMNS} FROM oauth_clients WHERE id = $1 AND deleted_at = 0`,
      values: [id],
    },
    ([found]: readonly ClientRow[]) => found && clientOf(found),
  )

/** In the order of their creation. @param after the id before the page; `''` at the beginning. */
const listClients = (after: string, limit: number): Query<readonly StoredClient[]> =>
  query(
    {
      name: 'clients',
      text: `SELECT ${COLUMNS} FROM oauth_clients WHERE id > $1 AND deleted_at = 0 ORDER BY id LIMIT $2`,
      values: [after, limit],
    },
    (found: readonly ClientRow[]) => found.map(clientOf),
  )

/** The ids of clients whose grants have to be removed. */
const listDeletedClients = (limit: number): Query<readonly string[]> =>
  query(
    {
      name: 'deleted-clients',
      text: 'SELECT id FROM oauth_clients WHERE deleted_at > 0 ORDER BY deleted_at LIMIT $1',
      values: [limit],
    },
    (found: readonly { id: string }[]) => found.map(({ id }) => id),
  )

/** The ids of clients that nobody has used since a time, and that have no grant. */
const listUnusedClients = (usedBefore: number, limit: number): Query<readonly string[]> =>
  query(
    {
      name: 'unused-clients',
      text: `SELECT id FROM oauth_clients WHERE origin <> 'administrator' AND used_at < $1 AND is_blocked = 0
        AND deleted_at = 0 AND NOT ${HAS_GRANT} ORDER BY used_at LIMIT $2`,
      values: [usedBefore, limit],
    },
    (found: readonly { id: string }[]) => found.map(({ id }) => id),
  )

export const clientOperations = {
  ...{
    addClient,
    keepDocumentClient,
    changeClient,
    rotateSecret,
    removeClient,
    removeGrantsOf,
    removeUnusedClient,
  },
}
export const clientReads = { findClient, listClients, listDeletedClients, listUnusedClients }
