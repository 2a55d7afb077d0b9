/** The endpoints of the authorization server, put together. */
import type { ClientTokens } from '#feature/deps'
import { Authorizations } from './authorizations.ts'
import type { IdTokenAlgorithm } from './client.ts'
import { ClientAuthentication } from './client-authentication.ts'
import { Clients } from './clients.ts'
import type { OAuthDeps } from './definitions.ts'
import { DeviceAuthorizations } from './device-authorizations.ts'
import { Grants } from './grants.ts'
import { IdTokenKeys } from './id-token-keys.ts'
import { IdTokens } from './id-tokens.ts'
import { Introspection } from './introspection.ts'
import { Logout } from './logout.ts'
import type { OtherClients } from './metadata.ts'
import { MetadataClients } from './metadata-clients.ts'
import { Possession } from './possession.ts'
import { PushedRequests } from './pushed-requests.ts'
import { Registration } from './registration.ts'
import { RequestReader } from './request-reader.ts'
import { Resources } from './resources.ts'
import { TokenEndpoint } from './token-endpoint.ts'
import { Tokens } from './tokens.ts'

export class OAuthServer {
  readonly authentication: ClientAuthentication
  readonly authorizations: Authorizations
  readonly logout: Logout
  readonly pushedRequests: PushedRequests
  readonly devices: DeviceAuthorizations
  readonly grants: Grants
  readonly tokenEndpoint: TokenEndpoint
  readonly introspection: Introspection
  readonly registration: Registration
  /** Which clients no administrator has made. */
  readonly others: OtherClients
  /** What signs ID tokens. */
  readonly algorithms: readonly IdTokenAlgorithm[]

  constructor(deps: OAuthDeps, signer: ClientTokens) {
    const resources = new Resources(deps)
    const clients = new Clients(deps)
    const metadataClients = new MetadataClients(deps, clients, resources)
    const tokens = new Tokens(deps, signer)
    const keys = new IdTokenKeys(deps, signer.keyPairs)
    const idTokens = new IdTokens(deps, keys)
    const { OAUTH_REGISTRATION: registration, OAUTH_METADATA_CLIENTS: hosts } = deps.settings
    this.others = { register: registration !== 'off', document: hosts.length > 0 }
    this.algorithms = keys.algorithms
    this.logout = new Logout(deps, clients, keys)
    this.authentication = new ClientAuthentication(deps, clients)
    this.grants = new Grants(deps, clients)
    const reader = new RequestReader(deps, resources)
    const possession = new Possession(deps, signer)
    this.pushedRequests = new PushedRequests(deps, reader, possession)
    this.authorizations = new Authorizations(deps, {
      ...{ clients, metadataClients, resources, grants: this.grants, reader },
      pushedRequests: this.pushedRequests,
    })
    this.devices = new DeviceAuthorizations(deps, clients, resources, this.grants)
    const { authentication, authorizations, devices, grants } = this
    this.tokenEndpoint = new TokenEndpoint({
      ...{ authentication, authorizations, devices, grants, resources, tokens, idTokens, possession },
    })
    this.registration = new Registration(deps, clients, resources)
    this.introspection = new Introspection(deps, clients, resources, grants, signer)
  }
}
