/** Clients that register themselves (RFC 7591). Whatever they say, they get no privilege, and users are asked for consent. */
import { type Actor, ServiceError } from '#feature/declaration'
import { type Client, isPublic } from './client.ts'
import { asDocumentError, type ClientDocument, documentOf, metadataOfDocument } from './client-document.ts'
import type { Clients } from './clients.ts'
import { ERRORS, type OAuthDeps } from './definitions.ts'
import { isLoopbackUri } from './redirect-uris.ts'
import type { Resources } from './resources.ts'

/** @throws {ServiceError} `registrationWithSecret`, `registrationOfDevice` unless it is a program on the device of a user. */
const assertOfDevice = (client: Pick<Client, 'authMethod' | 'redirectUris'>): void => {
  if (!isPublic(client)) throw new ServiceError(ERRORS.registrationWithSecret)
  if (!client.redirectUris.every(isLoopbackUri)) throw new ServiceError(ERRORS.registrationOfDevice)
}

export class Registration {
  readonly #deps: OAuthDeps
  readonly #clients: Clients
  readonly #resources: Resources

  constructor(deps: OAuthDeps, clients: Clients, resources: Resources) {
    this.#deps = deps
    this.#clients = clients
    this.#resources = resources
  }

  /** Who may register clients. `loopback`: anybody, programs on devices of users. */
  get mode(): OAuthDeps['settings']['OAUTH_REGISTRATION'] {
    return this.#deps.settings.OAUTH_REGISTRATION
  }

  /**
   * Registers a client. Who may, was checked before.
   * @returns the response (RFC 7591 §3.2.1). @throws {ServiceError} `clientMetadataInvalid`, `registrationWithSecret`, `registrationOfDevice`,
   * `tooManyClients`
   */
  async register(document: ClientDocument, actor: Actor) {
    const isOfDevice = this.mode === 'loopback'
    const scopes = await this.#resources.scopes()
    const metadata = metadataOfDocument(document, scopes, isOfDevice ? 'none' : 'client_secret_basic')
    if (isOfDevice) assertOfDevice(metadata)
    try {
      const { client, secret } = await this.#clients.register(metadata, actor)
      return {
        client_id: client.id,
        client_id_issued_at: Math.floor(client.createdAt / 1_000),
        ...(secret !== null && { client_secret: secret, client_secret_expires_at: 0 }),
        ...documentOf(client),
      }
    } catch (error) {
      throw asDocumentError(error)
    }
  }
}
