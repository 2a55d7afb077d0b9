/** The token endpoint (RFC 6749 §3.2): authenticates the client, and issues tokens by the type of its grant. */
import { ServiceError } from '#feature/declaration'
import type { Authorizations } from './authorizations.ts'
import type { GrantType, StoredClient } from './client.ts'
import type { ClientAuthentication, ClientParameters, ClientRequest } from './client-authentication.ts'
import { ERRORS } from './definitions.ts'
import type { GrantedAccess, Grants } from './grants.ts'
import type { IdTokens } from './id-tokens.ts'
import type { Resource } from './resource.ts'
import type { Resources } from './resources.ts'
import { ownScopesOf, scopesOf } from './scopes.ts'
import type { TokenResponse, Tokens } from './tokens.ts'

export interface TokenParameters extends ClientParameters {
  readonly grant_type: string
  readonly scope?: string | undefined
  readonly resource?: readonly string[] | undefined
  readonly code?: string | undefined
  readonly redirect_uri?: string | undefined
  readonly code_verifier?: string | undefined
  readonly refresh_token?: string | undefined
  readonly organization?: string | undefined
}

export interface TokenRequest extends ClientRequest {
  readonly parameters: TokenParameters
}

interface TokenEndpointDeps {
  readonly authentication: ClientAuthentication
  readonly resources: Resources
  readonly tokens: Tokens
  readonly authorizations: Authorizations
  readonly grants: Grants
  readonly idTokens: IdTokens
}

type Exchange = (client: StoredClient, parameters: TokenParameters) => Promise<TokenResponse>

export class TokenEndpoint {
  readonly #deps: TokenEndpointDeps
  readonly #exchanges: Partial<Record<GrantType, Exchange>>

  constructor(deps: TokenEndpointDeps) {
    this.#deps = deps
    this.#exchanges = {
      client_credentials: (client, parameters) => this.#clientCredentials(client, parameters),
      authorization_code: (client, parameters) => this.#code(client, parameters),
      refresh_token: (client, parameters) => this.#refresh(client, parameters),
    }
  }

  /**
   * @throws {ServiceError} `invalidClient`, `invalidRequest`, `tooManyRequests`, `unsupportedGrantType`, `unauthorizedClient`,
   * `invalidTarget`, `severalResources`, `invalidScope`, `invalidGrant`, `invalidOrganization`
   */
  async exchange(request: TokenRequest): Promise<TokenResponse> {
    const { parameters } = request
    const client = await this.#deps.authentication.authenticate(request)
    const type = parameters.grant_type as GrantType
    const exchange = Object.hasOwn(this.#exchanges, type) ? this.#exchanges[type] : undefined
    if (exchange === undefined) throw new ServiceError(ERRORS.unsupportedGrantType)
    if (!client.grantTypes.includes(type)) throw new ServiceError(ERRORS.unauthorizedClient)
    return exchange(client, parameters)
  }

  /** A token of the client's own, by default with every scope that it may have (RFC 6749 §4.4). */
  async #clientCredentials(client: StoredClient, { scope, resource: names }: TokenParameters) {
    const { tokens } = this.#deps
    const resource = (await this.#resourceOf(names)) ?? null
    const allowed = ownScopesOf(client, resource)
    const scopes = scope === undefined ? allowed : scopesOf(scope).filter(each => allowed.includes(each))
    return tokens.issue({ client, grant: null, scopes, resource })
  }

  async #code(client: StoredClient, parameters: TokenParameters) {
    const { code, redirect_uri: redirectUri, code_verifier: verifier, resource, organization } = parameters
    if (code === undefined) throw new ServiceError(ERRORS.invalidRequest)
    // Before the code is used.
    const asked = await this.#resourceOf(resource)
    const access = await this.#deps.authorizations.redeem(
      code,
      { redirectUri, verifier, organization },
      client,
    )
    const response = await this.#granted(client, access, access.grant.scopes, asked)
    const idToken = await this.#deps.idTokens.issue({ ...access, client, accessToken: response.access_token })
    return idToken === null ? response : { ...response, id_token: idToken }
  }

  async #refresh(client: StoredClient, parameters: TokenParameters) {
    const { refresh_token: text, scope, resource, organization } = parameters
    if (text === undefined) throw new ServiceError(ERRORS.invalidRequest)
    const asked = await this.#resourceOf(resource)
    const access = await this.#deps.grants.refresh(text, client, organization)
    const { scopes } = access.grant
    const narrowed = scope === undefined ? scopes : scopesOf(scope).filter(each => scopes.includes(each))
    return this.#granted(client, access, narrowed, asked)
  }

  /** @param asked the resource of the request, which must be that of the grant; `undefined`: it names none. */
  async #granted(
    client: StoredClient,
    { grant, userId, organization, refreshToken }: GrantedAccess,
    scopes: readonly string[],
    asked: Resource | null | undefined,
  ): Promise<TokenResponse> {
    const { tokens, resources } = this.#deps
    const resource = grant.resource === null ? null : await resources.find(grant.resource)
    if (resource === undefined || (asked !== undefined && asked?.identifier !== resource?.identifier))
      throw new ServiceError(ERRORS.invalidTarget)
    const { id, authenticatedAt } = grant
    const granted = { id, userId, authenticatedAt, organization }
    const response = tokens.issue({ client, grant: granted, scopes, resource })
    return refreshToken === null ? response : { ...response, refresh_token: refreshToken }
  }

  /** @returns `null` for the service itself; `undefined` if none is named. @throws {ServiceError} `invalidTarget`, `severalResources` */
  async #resourceOf(names: readonly string[] = []): Promise<Resource | null | undefined> {
    const [identifier, ...others] = names
    if (others.length > 0) throw new ServiceError(ERRORS.severalResources)
    if (identifier === undefined) return undefined
    const found = await this.#deps.resources.named(identifier)
    if (found === undefined) throw new ServiceError(ERRORS.invalidTarget)
    return found
  }
}
