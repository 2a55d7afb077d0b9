/**
 * Clients whose id is the URL of their metadata (draft-ietf-oauth-client-id-metadata-document). The document is read for each authorization.
 * When a user agrees, the store keeps what it said, so that tokens are refreshed without another request.
 */
import { isDeepStrictEqual } from 'node:util'
import { type Actor, ServiceError } from '#feature/declaration'
import { fieldErrors } from '#http/validation/field-errors'
import { hasSecret, metadataOf, type StoredClient } from './client.ts'
import { ClientDocument, metadataOfDocument } from './client-document.ts'
import { assertClient } from './client-rules.ts'
import type { Clients } from './clients.ts'
import { ERRORS, type OAuthDeps } from './definitions.ts'
import { idOfUrl, isMetadataUrl, isUrl } from './metadata-urls.ts'
import { RemoteDocumentError, RemoteDocuments } from './remote-documents.ts'
import type { Resources } from './resources.ts'

/** Bytes (§6.6 of the draft). */
const MAX_BYTES = 5_120

/** To one server. */
const MAX_CONNECTIONS = 4

/** What a document must not have: everybody can read it. */
const SECRETS = ['client_secret', 'client_secret_expires_at']

/** @throws {RemoteDocumentError} */
const readDocument = async (json: unknown, url: string): Promise<ClientDocument> => {
  const { jsonValidator } = await import('#http/validation/compile')
  const validate = jsonValidator(ClientDocument)
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw new RemoteDocumentError('the document is not an object')
  if (!('client_id' in json) || json.client_id !== url)
    throw new RemoteDocumentError('client_id is not the URL of the document')
  if (SECRETS.some(name => Object.hasOwn(json, name)))
    throw new RemoteDocumentError('the document has a secret')
  if (!validate(json as Record<string, unknown>))
    throw new RemoteDocumentError(`not valid: ${Object.keys(fieldErrors(validate.errors ?? [])).join(', ')}`)
  return json as unknown as ClientDocument
}

const notKnown = (reason: string): ServiceError =>
  new ServiceError(ERRORS.unknownClient, { sampledAs: 'oauth-client', logged: { reason } })

export class MetadataClients {
  readonly #deps: OAuthDeps
  readonly #clients: Clients
  readonly #resources: Resources
  readonly #documents: RemoteDocuments<ClientDocument>

  constructor(deps: OAuthDeps, clients: Clients, resources: Resources) {
    this.#deps = deps
    this.#clients = clients
    this.#resources = resources
    const { OAUTH_ALLOWED_HOSTS: allowedHosts } = deps.settings
    this.#documents = new RemoteDocuments({
      http: deps.openHttpClient({ allowedHosts, maxConnections: MAX_CONNECTIONS }),
      clock: deps.clock,
      maxBytes: MAX_BYTES,
      read: readDocument,
    })
  }

  /** The client that asks a user: registered, or as its document says now. @throws {ServiceError} `unknownClient` */
  async find(name: string): Promise<StoredClient> {
    const client = isUrl(name) ? await this.#read(name) : await this.#clients.named(name)
    if (client === undefined) throw new ServiceError(ERRORS.unknownClient)
    return client
  }

  /** Keeps what the document of a client says, for its tokens. @returns whether it may have any. */
  async keep(client: StoredClient, actor: Actor): Promise<boolean> {
    const { store, newEvent } = this.#deps
    if (client.documentUrl === null) return true
    const kept = await this.#clients.find(client.id)
    if (kept !== undefined && isDeepStrictEqual(metadataOf(kept), metadataOf(client))) return true
    const event = newEvent('client.created', actor, null, { client: client.id })
    return store.keepDocumentClient(client.id, client.documentUrl, metadataOf(client), event)
  }

  /** @throws {ServiceError} `unknownClient` */
  async #read(url: string): Promise<StoredClient> {
    if (!isMetadataUrl(url, this.#deps.settings.OAUTH_METADATA_CLIENTS))
      throw notKnown('not one of OAUTH_METADATA_CLIENTS')
    const id = idOfUrl(url)
    if ((await this.#clients.find(id))?.blocked) throw notKnown('blocked')
    try {
      const document = await this.#documents.get(url)
      const metadata = metadataOfDocument(document, await this.#resources.scopes(), 'none')
      if (hasSecret(metadata)) throw new RemoteDocumentError('a client with a document has no secret')
      assertClient(metadata)
      this.#clients.assertSignable(metadata)
      return {
        ...metadata,
        ...{ id, origin: 'document', documentUrl: url, createdAt: 0, updatedAt: 0 },
        ...{ secretDigest: null, formerDigest: null, formerSecretExpiresAt: null },
      }
    } catch (error) {
      if (error instanceof RemoteDocumentError) throw notKnown(error.message)
      if (error instanceof ServiceError && error.status === 400)
        throw notKnown(`not valid: ${error.field} ${error.message}`)
      throw error
    }
  }
}
