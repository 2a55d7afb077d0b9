/**
 * API keys of users (DESIGN §13): tokens for programs, with scopes and without a session. Their lookup is part of authentication
 * (`src/auth/api-key.ts`) and written by hand for each engine.
 */
import { detailsSchema, textSchema } from '../audit-log/detail-schemas.ts'
import type { ApiKey, NewKeyOptions } from '../auth/api-key.ts'
import type { CredentialLastRequest } from '../auth/last-requests.ts'
import { API_KEY_PREFIX, newOpaqueKey } from '../auth/opaque-key.ts'
import type { Principal } from '../auth/principal.ts'
import { ServiceError } from '../errors.ts'
import {
  type Actor,
  type AuditEvent,
  defineFeature,
  type FeatureDeps,
  type FeatureStore,
  firstRow,
  invalidates,
  invalidatesNothing,
  lockUser,
  type MailSite,
  newId,
  type Query,
  query,
  recordStatement,
  refusalOf,
  refusedFor,
  type Steps,
  sessionExists,
  table,
  type Write,
} from '../feature.ts'
import {
  API_KEY_COLUMNS,
  type ApiKeyRow,
  type ApiKeysTable,
  addKeyColumns,
  EXPIRED_KEPT,
  noteKeyRequests,
  toApiKey,
} from '../storage/key-rows.ts'
import type { UserRefusal } from '../users/user-store.ts'

/** Keys of one user, expired ones included. */
const MAX_KEYS = 50

interface StoredApiKey extends ApiKey {
  readonly digest: string
}

/**
 * Locks the user, so that concurrent calls count one after the other. The session must still exist: a new password, for example, has
 * ended it, and would not end the key.
 */
function* addApiKey(
  { id, name, digest, prefix, scopes, createdAt, expiresAt }: StoredApiKey,
  sessionId: string,
  event: AuditEvent,
): Steps<Write<'added' | 'tooManyApiKeys' | 'sessionNotFound' | UserRefusal>> {
  const { userId } = event
  const refused = refusalOf(yield* lockUser(userId), { onlyEnabled: true })
  if (refused !== null) return refusedFor(userId, refused)
  if ((yield* sessionExists(sessionId, userId)) === undefined) return refusedFor(userId, 'sessionNotFound')
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
  if (revoked === undefined) return refusedFor(userId, 'apiKeyNotFound')
  yield recordStatement(event)
  return invalidates(userId, 'revoked')
}

function* noteApiKeyRequests(requests: readonly CredentialLastRequest[]): Steps<Write<void>> {
  yield noteKeyRequests('api_keys', requests)
  return invalidatesNothing(undefined)
}

/** The keys of a user, newest first. */
const listApiKeys = (userId: string): Query<readonly ApiKey[]> =>
  query(
    {
      name: 'api-keys',
      text: `SELECT ${API_KEY_COLUMNS.join(', ')} FROM api_keys
        WHERE user_key = (SELECT key FROM users WHERE id = $1) ORDER BY id DESC LIMIT ${MAX_KEYS}`,
      values: [userId],
    },
    (found: readonly ApiKeyRow[]) => found.map(toApiKey),
  )

const OPERATIONS = { addApiKey, revokeApiKey, noteApiKeyRequests }
const READS = { listApiKeys }

const Details = detailsSchema({ apiKey: textSchema('The id of the API key') })
const EVENTS = { 'api-key.created': Details, 'api-key.revoked': Details }

const MAILS = {
  apiKeyCreated: {
    subject: 'An API key has been created for your account',
    isRateLimited: true,
    body: (site: MailSite, { scopes }: { readonly scopes: readonly string[] }) => [
      `A new API key works for your account at ${site.name}. Programs with it may do: ${scopes.join(', ')}.`,
      'If it was you, you need to do nothing.',
      {
        link: site.webUrl,
        label: 'If it was not you, revoke the key and choose a new password now',
      },
    ],
  },
}

type ApiKeysDeps = FeatureDeps<typeof OPERATIONS, typeof READS, typeof EVENTS, typeof MAILS>

export type ApiKeyStore = FeatureStore<typeof OPERATIONS, typeof READS>

export interface CreatedApiKey {
  /** The key itself, shown once. */
  readonly token: string
  readonly apiKey: ApiKey
}

export class ApiKeys {
  readonly #deps: ApiKeysDeps

  constructor(deps: ApiKeysDeps) {
    this.#deps = deps
  }

  /**
   * Creates a key for the user of a session, and mails the user.
   * @param principal of a session whose user has proved their identity.
   * @throws {ServiceError} `expiresInPast`, `tooManyApiKeys`, `signInRequired`
   */
  async create(
    principal: Principal,
    { name, scopes, expiresAt }: NewKeyOptions,
    actor: Actor,
  ): Promise<CreatedApiKey> {
    const { store, newEvent, mails, clock } = this.#deps
    const now = clock()
    if (expiresAt !== null && expiresAt <= now) throw new ServiceError('expiresInPast')
    const { user } = principal.cachedUser
    const { text, digest, shownPrefix } = newOpaqueKey(API_KEY_PREFIX)
    const id = newId(now)
    const apiKey = { id, name, prefix: shownPrefix, scopes, createdAt: now, expiresAt, lastUsedAt: null }
    const event = newEvent('api-key.created', actor, user.id, { apiKey: id })
    const outcome = await store.addApiKey({ ...apiKey, digest }, principal.credentialId, event)
    if (outcome === 'tooManyApiKeys') throw new ServiceError(outcome)
    if (outcome !== 'added') throw new ServiceError('signInRequired')
    mails.send('apiKeyCreated', user.email, { scopes })
    return { token: text, apiKey }
  }

  /** The keys of the user's own, newest first. */
  async listOwn(userId: string): Promise<readonly ApiKey[]> {
    return this.#deps.store.listApiKeys(userId)
  }

  /** The keys of any user. @throws {ServiceError} `userNotFound` */
  async list(userId: string): Promise<readonly ApiKey[]> {
    // First the keys: a user who exists afterwards existed then.
    const apiKeys = await this.listOwn(userId)
    await this.#deps.users.get(userId)
    return apiKeys
  }

  /** Revokes a key of the user's own. @throws {ServiceError} `apiKeyNotFound`, `signInRequired` */
  async revokeOwn(userId: string, id: string, actor: Actor): Promise<void> {
    const outcome = await this.#revoke(userId, id, actor, true)
    if (outcome === 'revoked') return
    throw new ServiceError(outcome === 'apiKeyNotFound' ? outcome : 'signInRequired')
  }

  /** Revokes a key of any user. @throws {ServiceError} `apiKeyNotFound`, `userNotFound` */
  async revoke(userId: string, id: string, actor: Actor): Promise<void> {
    const outcome = await this.#revoke(userId, id, actor, false)
    if (outcome === 'revoked') return
    throw new ServiceError(outcome === 'apiKeyNotFound' ? outcome : 'userNotFound')
  }

  #revoke(userId: string, id: string, actor: Actor, onlyEnabled: boolean) {
    const event = this.#deps.newEvent('api-key.revoked', actor, userId, { apiKey: id })
    return this.#deps.store.revokeApiKey(id, event, onlyEnabled)
  }
}

export const apiKeys = defineFeature({
  name: 'api-keys',
  module: import.meta.url,
  migrations: {
    '0001_api_keys': {
      async up(db, { text, keyType }) {
        await db.schema
          .createTable('api_keys')
          .addColumn('id', text, column => column.primaryKey())
          .addColumn('user_key', keyType, column =>
            column.notNull().references('users.key').onDelete('cascade'),
          )
          .$call(builder => addKeyColumns(builder, { text }))
          .execute()
        await db.schema
          .createIndex('api_keys_by_user_key')
          .on('api_keys')
          .columns(['user_key', 'id'])
          .execute()
        await db.schema.createIndex('api_keys_by_expires_at').on('api_keys').column('expires_at').execute()
      },
    },
  },
  tables: {
    api_keys: table<ApiKeysTable>({
      owner: 'user_key',
      key: 'id',
      updatedAt: 'last_used_at',
      cleanUp: { column: 'expires_at', after: EXPIRED_KEPT },
    }),
  },
  operations: OPERATIONS,
  reads: READS,
  events: EVENTS,
  mails: MAILS,
  services: { apiKeys: deps => new ApiKeys(deps) },
})
