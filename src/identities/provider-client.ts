/** What the service asks of one provider. `openid-client` is imported with the first request. */
import type { Configuration } from 'openid-client'
import { ServiceError } from '../errors.ts'
import { type HttpClient, HttpRequestError } from '../http-client/http-client.ts'
import type { Claims } from './claims.ts'
import { ERRORS } from './parts.ts'
import type { Provider } from './provider-settings.ts'

/** What is kept of a flow for its callback. */
export interface FlowSecrets {
  /** PKCE (RFC 7636). */
  readonly verifier: string
  readonly nonce: string
}

/** A request to the authorization endpoint. */
export interface AuthorizationRequest extends FlowSecrets {
  readonly redirectUri: string
  readonly state: string
}

/** The parameters of a callback, whose `state` was verified. */
export interface AuthorizationResponse extends AuthorizationRequest {
  readonly parameters: URLSearchParams
}

export interface ProviderClientDeps {
  readonly provider: Provider
  readonly http: Pick<HttpClient, 'request'>
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** Reports a failure of the provider, which may repeat with every request. @param reason says no secret. */
  readonly onFailure: (provider: Provider, reason: string) => void
}

/** Milliseconds for one request to a provider. A callback makes up to five. */
const TIME_LIMIT = 5_000
/** Bytes of one response. */
const MAX_BYTES = 1_048_576

/** Milliseconds after a failed discovery: 1, 2, 4 … seconds, at most one minute. */
const FIRST_PAUSE = 1_000
const LONGEST_PAUSE = 60_000

const unavailable = (): ServiceError => new ServiceError(ERRORS.providerUnavailable)

/** `fetch` as `openid-client` uses it, by the client that is limited to public addresses, in time and in bytes. */
export const fetchBy =
  (http: Pick<HttpClient, 'request'>) =>
  async (
    url: string,
    options: { body?: unknown; headers: Record<string, string>; method: string; signal?: AbortSignal },
  ): Promise<Response> => {
    const { body, headers, method, signal } = options
    const response = await http.request(new URL(url), {
      method: method === 'POST' ? 'POST' : 'GET',
      headers,
      body: body === undefined || body === null ? undefined : String(body),
      timeLimit: TIME_LIMIT,
      maxBytes: MAX_BYTES,
      signal,
    })
    const { status } = response
    // `Response` takes no other status, and no body with these.
    if (status < 200 || status > 599) throw new HttpRequestError('connection')
    const type = response.headers['content-type']
    return new Response(
      status === 204 || status === 205 || status === 304 ? null : new Uint8Array(response.body),
      {
        status,
        headers: type === undefined ? {} : { 'content-type': type },
      },
    )
  }

/** The codes of `openid-client` for a provider that does not work, and not for a user who is not confirmed. */
const BROKEN: ReadonlySet<unknown> = new Set([
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_MISSING_SERVER_METADATA',
  'OAUTH_INVALID_SERVER_METADATA',
  'OAUTH_HTTP_REQUEST_FORBIDDEN',
  'OAUTH_REQUEST_PROTOCOL_FORBIDDEN',
  'OAUTH_TIMEOUT',
  'OAUTH_ABORT',
])

/** Errors of the token endpoint (RFC 6749 §5.2) that are mistakes of the settings. */
const MISCONFIGURED: ReadonlySet<unknown> = new Set([
  'invalid_client',
  'unauthorized_client',
  'invalid_scope',
])

interface Raised {
  readonly code?: unknown
  readonly error?: unknown
  readonly status?: unknown
  readonly cause?: unknown
}

/**
 * @returns why the provider does not work; `null` if it works, and does not confirm the user. Never more than a code: messages and causes
 * contain tokens and claims.
 */
const failureOf = (error: unknown): string | null => {
  const { code, error: oauthError, status, cause } = error as Raised
  for (const each of [error, cause]) if (each instanceof HttpRequestError) return each.failure
  if (MISCONFIGURED.has(oauthError)) return String(oauthError)
  if (typeof status === 'number' && status >= 500) return `status ${status}`
  return BROKEN.has(code) ? String(code) : null
}

export class ProviderClient {
  readonly #deps: ProviderClientDeps
  #configuration: Promise<Configuration> | null = null
  #pause = 0
  #pausedUntil = 0

  constructor(deps: ProviderClientDeps) {
    this.#deps = deps
  }

  /** @returns the URL to which the browser is sent. @throws {ServiceError} `providerUnavailable` */
  async authorizationUrl(request: AuthorizationRequest): Promise<string> {
    const { provider } = this.#deps
    const configuration = await this.#configure()
    const { authorizationUrl } = await import('./openid-client.ts')
    return authorizationUrl(configuration, provider, request)
  }

  /**
   * Redeems the code of a callback.
   * @throws {ServiceError} `wrongProviderFlow` if the response is another provider's, or none; `providerRejected`, `providerUnavailable`
   */
  async redeem(response: AuthorizationResponse): Promise<Claims> {
    const { provider, onFailure } = this.#deps
    const configuration = await this.#configure()
    const { redeem, isResponseOf } = await import('./openid-client.ts')
    if (!isResponseOf(configuration, response.parameters)) throw new ServiceError(ERRORS.wrongProviderFlow)
    // The user has refused, for example. Its description is never shown: anybody can write it into a link.
    if (!response.parameters.get('code')) throw new ServiceError(ERRORS.providerRejected)
    try {
      return await redeem(configuration, provider, response)
    } catch (error) {
      const failure = failureOf(error)
      if (failure === null) throw new ServiceError(ERRORS.providerRejected)
      // Its endpoints may have changed.
      this.#configuration = null
      onFailure(provider, failure)
      throw unavailable()
    }
  }

  /** The metadata of the provider, requested when they are first needed, and again after a failure. */
  async #configure(): Promise<Configuration> {
    if (this.#configuration === null) {
      if (this.#deps.clock() < this.#pausedUntil) throw unavailable()
      this.#configuration = this.#discover()
    }
    return this.#configuration
  }

  async #discover(): Promise<Configuration> {
    const { provider, http, clock, onFailure } = this.#deps
    try {
      const { discover } = await import('./openid-client.ts')
      const configuration = await discover(provider, fetchBy(http))
      this.#pause = 0
      return configuration
    } catch (error) {
      this.#configuration = null
      this.#pause = Math.min(Math.max(FIRST_PAUSE, this.#pause * 2), LONGEST_PAUSE)
      this.#pausedUntil = clock() + this.#pause
      onFailure(provider, failureOf(error) ?? String((error as Raised).code ?? 'unexpected metadata'))
      throw unavailable()
    }
  }
}
