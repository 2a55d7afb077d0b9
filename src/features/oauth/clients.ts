/** Clients: what administrators do with them. Each change ends the tokens that it takes away before it is acknowledged. */
import { type HttpClient, HttpRequestError } from '#base/http-client/http-client'
import type { IdCache } from '#core/auth/feature-caches'
import { CLIENT_SECRET_PREFIX, newOpaqueKey } from '#core/auth/opaque-key'
import {
  type Actor,
  idOfCursor,
  type JobRun,
  type MaybePromise,
  newId,
  OPERATOR,
  type Page,
  pageOf,
  ServiceError,
} from '#feature/declaration'
import {
  type Client,
  type ClientMetadata,
  type ClientOrigin,
  clientIdOf,
  hasSecret,
  metadataOf,
  type StoredClient,
  UNUSED_LIFETIME,
} from './client.ts'
import { assertClient } from './client-rules.ts'
import { ERRORS, type OAuthDeps } from './definitions.ts'
import { idOfUrl, isMetadataUrl, isUrl } from './metadata-urls.ts'

/** How long a secret is valid beside the one that follows it, in milliseconds. */
const ROTATION = 86_400_000

/** Clients in memory. */
const CACHED = 10_000

/** Grants that one write removes. */
const SLICE = 200

export interface CreatedClient {
  readonly client: Client
  /** Shown once; `null` for a client without a secret. */
  readonly secret: string | null
}

export interface RotatedSecret {
  /** Shown once. */
  readonly secret: string
  /** Milliseconds since the epoch. */
  readonly formerExpiresAt: number
}

/** The admin scopes of the key that makes a change; `null`: all. */
export type ActingScopes = readonly string[] | null

/** @throws {ServiceError} `scopeRequired` for scopes that they do not have themselves. */
const assertGrantable = (given: readonly string[], acting: ActingScopes): void => {
  const missing = acting === null ? [] : given.filter(scope => !acting.includes(scope))
  if (missing.length > 0) throw new ServiceError('scopeRequired', { missingAdminScopes: missing })
}

export class Clients {
  readonly #deps: OAuthDeps
  #http: HttpClient | null = null
  /** Opened where it is used first: each run of a job has an object of its own. */
  #cache: IdCache<StoredClient | undefined> | null = null

  constructor(deps: OAuthDeps) {
    this.#deps = deps
  }

  /** From memory, as current as a cached user. */
  find(id: string): MaybePromise<StoredClient | undefined> {
    const { openCache, store } = this.#deps
    this.#cache ??= openCache({ load: key => store.findClient(key), max: CACHED })
    return this.#cache.get(id)
  }

  /** The client that a request names by its `client_id`, unless it is blocked. */
  async named(clientId: string): Promise<StoredClient | undefined> {
    const hosts = this.#deps.settings.OAUTH_METADATA_CLIENTS
    if (isUrl(clientId) && !isMetadataUrl(clientId, hosts)) return undefined
    const client = await this.find(isUrl(clientId) ? idOfUrl(clientId) : clientId)
    return client === undefined || client.blocked || clientIdOf(client) !== clientId ? undefined : client
  }

  /**
   * Registers a client.
   * @throws {ServiceError} an error of its metadata, `scopeRequired`, `tooManyClients`
   */
  async create(metadata: ClientMetadata, acting: ActingScopes, actor: Actor): Promise<CreatedClient> {
    assertGrantable(metadata.adminScopes, acting)
    return this.#add(metadata, 'administrator', actor)
  }

  /** Adds a client that has registered itself. @throws {ServiceError} an error of its metadata, `tooManyClients` */
  register(metadata: ClientMetadata, actor: Actor): Promise<CreatedClient> {
    return this.#add(metadata, 'registered', actor)
  }

  /** A page of all clients, in the order of their creation. @throws {ServiceError} `badCursor` */
  async list(limit: number, cursor?: string): Promise<Page<Client>> {
    return pageOf(await this.#deps.store.listClients(idOfCursor(cursor) ?? '', limit + 1), limit)
  }

  /** @throws {ServiceError} `clientNotFound` */
  async get(id: string): Promise<StoredClient> {
    const found = await this.#deps.store.findClient(id)
    if (found === undefined) throw new ServiceError(ERRORS.clientNotFound)
    return found
  }

  /**
   * Changes what is given.
   * @throws {ServiceError} `clientNotFound`, `clientOfDocument`, an error of its metadata, `scopeRequired`, `clientChanged`
   */
  async change(
    id: string,
    changes: Partial<ClientMetadata>,
    acting: ActingScopes,
    actor: Actor,
  ): Promise<Client> {
    const { store, newEvent } = this.#deps
    const former = await this.get(id)
    if (former.documentUrl !== null && Object.keys(changes).some(name => name !== 'blocked'))
      throw new ServiceError(ERRORS.clientOfDocument)
    const changed = { ...metadataOf(former), ...changes }
    assertClient(changed)
    if (changed.idTokenAlgorithm !== former.idTokenAlgorithm) this.assertSignable(changed)
    if (changed.jwksUri !== former.jwksUri) await this.#assertReachable(changed)
    const added = changed.adminScopes.filter(scope => !former.adminScopes.includes(scope))
    assertGrantable(added, acting)
    const event = newEvent('client.changed', actor, null, { client: id })
    if (!(await store.changeClient(id, former.updatedAt, changed, event)))
      throw new ServiceError(ERRORS.clientChanged)
    return this.get(id)
  }

  /** Replaces the secret. The current one is valid for another day. @throws {ServiceError} `clientNotFound`, `clientWithoutSecret` */
  async rotateSecret(id: string, actor: Actor): Promise<RotatedSecret> {
    const { store, newEvent, clock } = this.#deps
    if (!hasSecret(await this.get(id))) throw new ServiceError(ERRORS.clientWithoutSecret)
    const { text, digest } = newOpaqueKey(CLIENT_SECRET_PREFIX)
    const formerExpiresAt = clock() + ROTATION
    const event = newEvent('client.secret-rotated', actor, null, { client: id })
    if (!(await store.rotateSecret(id, digest, formerExpiresAt, event)))
      throw new ServiceError(ERRORS.clientNotFound)
    return { secret: text, formerExpiresAt }
  }

  /** Ends its tokens at once, everywhere. @throws {ServiceError} `clientNotFound` */
  async remove(id: string, actor: Actor): Promise<void> {
    const { store, newEvent } = this.#deps
    if (!(await store.removeClient(id, newEvent('client.deleted', actor, null, { client: id }))))
      throw new ServiceError(ERRORS.clientNotFound)
  }

  async #add(metadata: ClientMetadata, origin: ClientOrigin, actor: Actor): Promise<CreatedClient> {
    const { store, newEvent, clock } = this.#deps
    assertClient(metadata)
    this.assertSignable(metadata)
    await this.#assertReachable(metadata)
    const id = newId(clock())
    const secret = hasSecret(metadata) ? newOpaqueKey(CLIENT_SECRET_PREFIX) : null
    const event = newEvent('client.created', actor, null, { client: id })
    if ((await store.addClient(id, metadata, secret?.digest ?? null, origin, event)) !== 'added')
      throw new ServiceError(ERRORS.tooManyClients)
    return { client: await this.get(id), secret: secret?.text ?? null }
  }

  /** @throws {ServiceError} `algorithmWithoutKey`; on the command line, which has no keys, everything can be signed. */
  assertSignable({ idTokenAlgorithm }: ClientMetadata): void {
    const keyPairs = this.#deps.clientTokens()?.keyPairs ?? null
    if (idTokenAlgorithm === 'RS256' || keyPairs === null) return
    if (keyPairs.every(({ algorithm }) => algorithm !== idTokenAlgorithm))
      throw new ServiceError(ERRORS.algorithmWithoutKey)
  }

  /** @throws {ServiceError} `keysUriBlocked`, `keysUriUnresolved` */
  async #assertReachable({ jwksUri }: ClientMetadata): Promise<void> {
    if (jwksUri === null) return
    const { openHttpClient, settings } = this.#deps
    this.#http ??= openHttpClient({ allowedHosts: settings.OAUTH_ALLOWED_HOSTS, maxConnections: 1 })
    try {
      await this.#http.check(new URL(jwksUri))
    } catch (error) {
      if (!(error instanceof HttpRequestError)) throw error
      throw new ServiceError(error.failure === 'blocked' ? ERRORS.keysUriBlocked : ERRORS.keysUriUnresolved)
    }
  }

  /** Removes the grants of deleted clients, whose tokens have ended already. */
  async removeDeleted({ signal }: JobRun): Promise<void> {
    const { store } = this.#deps
    for (const id of await store.listDeletedClients(SLICE)) {
      let isGone = false
      while (!isGone) {
        signal.throwIfAborted()
        isGone = await store.removeGrantsOf(id, SLICE)
      }
    }
  }

  /** Removes clients that no administrator has made, and that nobody uses. */
  async removeUnused({ signal }: JobRun): Promise<void> {
    const { store, clock, newEvent } = this.#deps
    const usedBefore = clock() - UNUSED_LIFETIME
    for (const id of await store.listUnusedClients(usedBefore, SLICE)) {
      signal.throwIfAborted()
      await store.removeUnusedClient(
        id,
        usedBefore,
        newEvent('client.deleted', OPERATOR, null, { client: id }),
      )
    }
  }
}
