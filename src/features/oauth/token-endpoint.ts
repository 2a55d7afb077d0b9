/** The token endpoint (RFC 6749 §3.2): authenticates the client, and issues tokens by the type of its grant. */
import { ServiceError } from '#feature/declaration'
import type { Authorizations, RedeemedCode } from './authorizations.ts'
import { DEVICE_CODE, type GrantType, type StoredClient } from './client.ts'
import type { ClientAuthentication, ClientParameters, ClientRequest } from './client-authentication.ts'
import { ERRORS } from './definitions.ts'
import type { DeviceAuthorizations, DeviceResponse, Requester } from './device-authorizations.ts'
import type { GrantedAccess, Grants } from './grants.ts'
import type { IdTokens } from './id-tokens.ts'
import type { Possession, PresentedProof } from './possession.ts'
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
  readonly device_code?: string | undefined
  readonly organization?: string | undefined
}

export interface TokenRequest extends ClientRequest {
  readonly proof: PresentedProof
  readonly parameters: TokenParameters
}

interface TokenEndpointDeps {
  readonly authentication: ClientAuthentication
  readonly resources: Resources
  readonly tokens: Tokens
  readonly authorizations: Authorizations
  readonly devices: DeviceAuthorizations
  readonly grants: Grants
  readonly idTokens: IdTokens
  readonly possession: Possession
}

/** @param jkt the key of the request; `null`: it had none. */
type Exchange = (
  client: StoredClient,
  parameters: TokenParameters,
  jkt: string | null,
) => Promise<TokenResponse>

export class TokenEndpoint {
  readonly #deps: TokenEndpointDeps
  readonly #exchanges: Partial<Record<GrantType, Exchange>>

  constructor(deps: TokenEndpointDeps) {
    this.#deps = deps
    this.#exchanges = {
      client_credentials: (...request) => this.#clientCredentials(...request),
      authorization_code: (...request) => this.#code(...request),
      refresh_token: (...request) => this.#refresh(...request),
      [DEVICE_CODE]: (...request) => this.#device(...request),
    }
  }

  /**
   * @throws {ServiceError} `invalidClient`, `invalidRequest`, `tooManyRequests`, `unsupportedGrantType`, `unauthorizedClient`,
   * `invalidTarget`, `severalResources`, `invalidScope`, `invalidGrant`, `invalidOrganization`, `invalidProof`, `proofNonceRequired`, and
   * those of `DeviceAuthorizations.redeem`
   */
  async exchange(request: TokenRequest): Promise<TokenResponse> {
    const { parameters } = request
    const client = await this.#deps.authentication.authenticate(request)
    const type = parameters.grant_type as GrantType
    const exchange = Object.hasOwn(this.#exchanges, type) ? this.#exchanges[type] : undefined
    if (exchange === undefined) throw new ServiceError(ERRORS.unsupportedGrantType)
    if (!client.grantTypes.includes(type)) throw new ServiceError(ERRORS.unauthorizedClient)
    return exchange(client, parameters, await this.#deps.possession.keyOf(request.proof))
  }

  /**
   * Begins the request of a device (RFC 8628 §3.1).
   * @throws {ServiceError} `invalidClient`, `invalidRequest`, `tooManyRequests`, `unauthorizedClient`, `invalidTarget`, `severalResources`,
   * `invalidScope`
   */
  async beginDevice(
    request: ClientRequest & { readonly parameters: Pick<TokenParameters, 'scope' | 'resource'> },
    address: Requester['address'],
  ): Promise<DeviceResponse> {
    const { authentication, devices } = this.#deps
    const client = await authentication.authenticate(request)
    if (!client.grantTypes.includes(DEVICE_CODE)) throw new ServiceError(ERRORS.unauthorizedClient)
    const { scope, resource } = request.parameters
    const { network } = request
    const asked = (await this.#resourceOf(resource)) ?? null
    return devices.begin(client, scope, asked, { address, network })
  }

  /** A token of the client's own, by default with every scope that it may have (RFC 6749 §4.4). */
  async #clientCredentials(
    client: StoredClient,
    { scope, resource: names }: TokenParameters,
    jkt: string | null,
  ) {
    const { tokens } = this.#deps
    const resource = (await this.#resourceOf(names)) ?? null
    const allowed = ownScopesOf(client, resource)
    const scopes = scope === undefined ? allowed : scopesOf(scope).filter(each => allowed.includes(each))
    return tokens.issue({ client, grant: null, scopes, resource, jkt })
  }

  async #code(client: StoredClient, parameters: TokenParameters, jkt: string | null) {
    const { code, redirect_uri: redirectUri, code_verifier: verifier, resource, organization } = parameters
    if (code === undefined) throw new ServiceError(ERRORS.invalidRequest)
    // Before the code is used.
    const asked = await this.#resourceOf(resource)
    const given = { redirectUri, verifier, organization, jkt }
    const access = await this.#deps.authorizations.redeem(code, given, client)
    return this.#redeemed(client, access, asked, jkt)
  }

  async #device(
    client: StoredClient,
    { device_code: code, resource, organization }: TokenParameters,
    jkt: string | null,
  ) {
    if (code === undefined) throw new ServiceError(ERRORS.invalidRequest)
    const asked = await this.#resourceOf(resource)
    return this.#redeemed(
      client,
      await this.#deps.devices.redeem(code, { jkt, organization }, client),
      asked,
      jkt,
    )
  }

  /** The response to a new grant. @param asked the resource of the request. */
  async #redeemed(
    client: StoredClient,
    access: RedeemedCode,
    asked: Resource | null | undefined,
    jkt: string | null,
  ): Promise<TokenResponse> {
    const response = await this.#granted(client, access, { scopes: access.grant.scopes, jkt }, asked)
    const idToken = await this.#deps.idTokens.issue({ ...access, client, accessToken: response.access_token })
    return idToken === null ? response : { ...response, id_token: idToken }
  }

  async #refresh(client: StoredClient, parameters: TokenParameters, jkt: string | null) {
    const { refresh_token: text, scope, resource, organization } = parameters
    if (text === undefined) throw new ServiceError(ERRORS.invalidRequest)
    const asked = await this.#resourceOf(resource)
    const access = await this.#deps.grants.refresh(text, client, jkt, organization)
    const { scopes } = access.grant
    const narrowed = scope === undefined ? scopes : scopesOf(scope).filter(each => scopes.includes(each))
    return this.#granted(client, access, { scopes: narrowed, jkt }, asked)
  }

  /** @param asked the resource of the request, which must be that of the grant; `undefined`: it names none. */
  async #granted(
    client: StoredClient,
    { grant, userId, organization, refreshToken }: GrantedAccess,
    { scopes, jkt }: { readonly scopes: readonly string[]; readonly jkt: string | null },
    asked: Resource | null | undefined,
  ): Promise<TokenResponse> {
    const { tokens, resources } = this.#deps
    const resource = grant.resource === null ? null : await resources.find(grant.resource)
    if (resource === undefined || (asked !== undefined && asked?.identifier !== resource?.identifier))
      throw new ServiceError(ERRORS.invalidTarget)
    const { id, authenticatedAt } = grant
    const granted = { id, userId, authenticatedAt, organization }
    const response = tokens.issue({ client, grant: granted, scopes, resource, jkt })
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
