/** What the service asks of one provider. `openid-client` is imported with the first request. */
import type { Configuration } from 'openid-client'
import { ServiceError } from '#base/errors'
import type { HttpClient } from '#base/http-client/http-client'
import type { Claims } from './claims.ts'
import { ERRORS } from './definitions.ts'
import type { AuthorizationRequest, AuthorizationResponse } from './openid-client.ts'
import { codeOf, fetchBy, ProviderError } from './provider-responses.ts'
import type { Provider } from './provider-settings.ts'

export interface ProviderClientDeps {
  readonly provider: Provider
  readonly http: Pick<HttpClient, 'request'>
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

/** Milliseconds after a failed discovery: 1, 2, 4 … seconds, at most one minute. */
const FIRST_PAUSE = 1_000
const LONGEST_PAUSE = 60_000

/** Parameters of JARM, and of implicit and hybrid flows, which nobody has asked for. */
const OTHER_FLOWS = ['response', 'id_token', 'token']

/** @param reason for the log. */
export const wrongFlow = (provider: string, reason: string): ServiceError =>
  new ServiceError(ERRORS.wrongProviderFlow, { logged: { provider, reason } })

/** The error of a request that a provider fails, with the reason for the log. */
const serviceErrorOf = ({ id }: Provider, error: ProviderError): ServiceError => {
  const { failure, reason, endpoint } = error
  const logged = { provider: id, reason, ...(endpoint !== null && { endpoint }) }
  switch (failure) {
    case 'broken':
      return new ServiceError(ERRORS.providerUnavailable, { logged })
    case 'untrusted':
      return new ServiceError(ERRORS.providerRejected, { logged, isOutage: true })
    case 'refused':
      return new ServiceError(ERRORS.providerRejected, { logged, sampledAs: 'provider' })
  }
}

export class ProviderClient {
  readonly #deps: ProviderClientDeps
  #configuration: Promise<Configuration> | null = null
  #pause = 0
  #pausedUntil = 0
  #failure: ProviderError | null = null

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
    const { provider } = this.#deps
    const configuration = await this.#configure()
    const { redeem, isResponseOf } = await import('./openid-client.ts')
    if (!isResponseOf(configuration, response.parameters))
      throw wrongFlow(provider.id, 'the response is of another provider, or of none')
    try {
      // The user has refused, for example. Its description is never shown: anybody can write it into a link.
      if (!response.parameters.get('code'))
        throw new ProviderError('refused', codeOf(response.parameters.get('error')))
      if (OTHER_FLOWS.some(name => response.parameters.has(name)))
        throw new ProviderError('refused', 'the response is of another flow')
      return await redeem(configuration, provider, response)
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error
      // Its endpoints may have changed.
      if (error.failure === 'broken') this.#configuration = null
      throw serviceErrorOf(provider, error)
    }
  }

  /** The metadata of the provider, requested when they are first needed, and again after a failure. */
  async #configure(): Promise<Configuration> {
    if (this.#configuration === null) {
      if (this.#failure !== null && this.#deps.clock() < this.#pausedUntil)
        throw serviceErrorOf(this.#deps.provider, this.#failure)
      this.#configuration = this.#discover()
    }
    return this.#configuration
  }

  async #discover(): Promise<Configuration> {
    const { provider, http, clock } = this.#deps
    try {
      const { discover } = await import('./openid-client.ts')
      const configuration = await discover(provider, fetchBy(http, provider))
      this.#pause = 0
      return configuration
    } catch (error) {
      this.#configuration = null
      if (!(error instanceof ProviderError)) throw error
      this.#failure = error
      this.#pause = Math.min(Math.max(FIRST_PAUSE, this.#pause * 2), LONGEST_PAUSE)
      this.#pausedUntil = clock() + this.#pause
      throw serviceErrorOf(provider, error)
    }
  }
}
