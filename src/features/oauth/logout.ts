/**
 * Logout that a client begins (OpenID Connect RP-Initiated Logout 1.0): the browser comes with what the client says, and goes back to the client
 * once the session has ended.
 */
import { ServiceError } from '#feature/declaration'
import type { StoredClient } from './client.ts'
import type { Clients } from './clients.ts'
import { ERRORS, type OAuthDeps } from './definitions.ts'
import type { IdTokenKeys } from './id-token-keys.ts'

export interface LogoutParameters {
  readonly id_token_hint?: string | undefined
  readonly client_id?: string | undefined
  readonly post_logout_redirect_uri?: string | undefined
  readonly state?: string | undefined
}

export interface LogoutRequest {
  readonly client: StoredClient | null
  /** Where the browser goes afterwards; `null`: nowhere. */
  readonly target: string | null
  /** The user of the ID token, for whom the client may end the session; `null`: it must be asked. */
  readonly userId: string | null
}

interface Hint {
  readonly clientId: string
  readonly userId: string
}

export class Logout {
  readonly #deps: OAuthDeps
  readonly #clients: Clients
  readonly #keys: IdTokenKeys

  constructor(deps: OAuthDeps, clients: Clients, keys: IdTokenKeys) {
    this.#deps = deps
    this.#clients = clients
    this.#keys = keys
  }

  /**
   * What a client asks for.
   * @throws {ServiceError} `unknownClient`, `unknownLogoutUri`, `invalidHint`: the browser must not be sent to the client.
   */
  async read(parameters: LogoutParameters): Promise<LogoutRequest> {
    const { id_token_hint: text, client_id: id, post_logout_redirect_uri: uri, state } = parameters
    const hint = text === undefined ? null : this.#read(text)
    if (hint !== null && id !== undefined && id !== hint.clientId) throw new ServiceError(ERRORS.invalidHint)
    const clientId = hint?.clientId ?? id
    const client = clientId === undefined ? undefined : await this.#clients.find(clientId)
    if (clientId !== undefined && client === undefined) throw new ServiceError(ERRORS.unknownClient)
    const userId = hint?.userId ?? null
    if (uri === undefined) return { client: client ?? null, target: null, userId }
    // Compared as text, also for a loopback address (§3).
    if (client === undefined || !client.postLogoutRedirectUris.includes(uri))
      throw new ServiceError(ERRORS.unknownLogoutUri)
    const target = new URL(uri)
    if (state !== undefined) target.searchParams.set('state', state)
    return { client, target: target.href, userId }
  }

  /** An ID token that this service has issued. It may have expired (§2). @throws {ServiceError} `invalidHint` */
  #read(text: string): Hint {
    const claims = this.#keys.verify(text)
    const { iss, aud, sub } = claims ?? {}
    if (iss !== this.#deps.config.publicUrl || typeof aud !== 'string' || typeof sub !== 'string')
      throw new ServiceError(ERRORS.invalidHint)
    return { clientId: aud, userId: sub }
  }
}
