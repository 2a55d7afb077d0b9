/** Reads authorization requests of clients, which a browser brings, or which the client pushes. */
import { ServiceError } from '#feature/declaration'
import {
  type AuthorizationParameters,
  type AuthorizationRequest,
  type RequestError,
  readRequest,
} from './authorization-request.ts'
import type { Client } from './client.ts'
import { ERRORS, type OAuthDeps } from './definitions.ts'
import { isRegistered } from './redirect-uris.ts'
import type { Resources } from './resources.ts'

/** @throws {ServiceError} `unknownRedirectUri` */
const redirectUriOf = ({ redirect_uri: given }: AuthorizationParameters, client: Client): string => {
  const [only, ...others] = client.redirectUris
  const uri = given ?? (others.length === 0 ? only : undefined)
  if (uri === undefined || !isRegistered(uri, client.redirectUris))
    throw new ServiceError(ERRORS.unknownRedirectUri)
  return uri
}

export class RequestReader {
  readonly #deps: OAuthDeps
  readonly #resources: Resources

  constructor(deps: OAuthDeps, resources: Resources) {
    this.#deps = deps
    this.#resources = resources
  }

  /**
   * @returns the request, or what is wrong with it, and where the client may be told so.
   * @throws {ServiceError} `unknownRedirectUri`: the browser must not be sent to the client.
   */
  async read(
    parameters: AuthorizationParameters,
    client: Client,
  ): Promise<{ readonly redirectUri: string; readonly read: AuthorizationRequest | RequestError }> {
    const { clock, userScopes } = this.#deps
    const redirectUri = redirectUriOf(parameters, client)
    const [identifier] = parameters.resource ?? []
    const resource = identifier === undefined ? null : await this.#resources.named(identifier)
    return { redirectUri, read: readRequest(parameters, client, redirectUri, resource, userScopes, clock()) }
  }
}
