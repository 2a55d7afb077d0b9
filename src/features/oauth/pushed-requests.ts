/**
 * Pushed authorization requests (RFC 9126): the client sends its request itself, authenticated, and the browser brings only a name of it, which
 * is used once. The row of a pushed request becomes that of the request which the user decides.
 */
import { ServiceError } from '#feature/declaration'
import { type AuthorizationParameters, type AuthorizationRequest, isError } from './authorization-request.ts'
import type { StoredClient } from './client.ts'
import { ERRORS, type OAuthDeps } from './definitions.ts'
import { RefusedRequest } from './oauth-errors.ts'
import type { Possession, PresentedProof } from './possession.ts'
import type { RequestReader } from './request-reader.ts'
import { digestOf, newToken } from './request-tokens.ts'

const PREFIX = 'urn:ietf:params:oauth:request_uri:'

/** Whether a `request_uri` names a pushed request; others are not supported. */
export const isPushed = (requestUri: string | undefined): requestUri is string =>
  requestUri?.startsWith(PREFIX) ?? false

/** Milliseconds until the browser must have brought it. */
const LIFETIME = 60_000

/** The body of a response to a pushed request (RFC 9126 §2.2). */
export interface PushedResponse {
  readonly request_uri: string
  readonly expires_in: number
}

export class PushedRequests {
  readonly #deps: OAuthDeps
  readonly #reader: RequestReader
  readonly #possession: Possession

  constructor(deps: OAuthDeps, reader: RequestReader, possession: Possession) {
    this.#deps = deps
    this.#reader = reader
    this.#possession = possession
  }

  /**
   * @param presented a proof of possession in the place of `dpop_jkt` (RFC 9449 §10.1).
   * @throws {ServiceError} `unknownRedirectUri`, {@link RefusedRequest}, `invalidProof`, `proofNonceRequired`
   */
  async push(
    parameters: AuthorizationParameters,
    client: StoredClient,
    presented: PresentedProof,
  ): Promise<PushedResponse> {
    const { store, clock } = this.#deps
    const { read } = await this.#reader.read(parameters, client)
    if (isError(read)) throw new RefusedRequest(read)
    const jkt = (await this.#possession.keyOf(presented)) ?? read.jkt
    if (read.jkt !== null && read.jkt !== jkt) throw new ServiceError(ERRORS.invalidProof)
    const token = newToken()
    await store.pushRequest(digestOf(token), { ...read, jkt }, clock() + LIFETIME)
    return { request_uri: PREFIX + token, expires_in: LIFETIME / 1_000 }
  }

  /**
   * Makes a pushed request one that the user decides: of many browsers with it, for one.
   * @param requestUri {@link isPushed}. @param name of the new request. @param lifetime of it, in milliseconds.
   * @throws {ServiceError} `unknownRequestUri` also for a request of another client, which stays
   */
  async take(
    requestUri: string,
    client: StoredClient,
    name: string,
    lifetime: number,
  ): Promise<AuthorizationRequest> {
    const { store, clock } = this.#deps
    const now = clock()
    const pushed = digestOf(requestUri.slice(PREFIX.length))
    const request = await store.takePushedRequest(pushed, client.id, digestOf(name), now + lifetime, now)
    if (request === null) throw new ServiceError(ERRORS.unknownRequestUri)
    return request
  }
}
