/** The endpoints of the authorization server, put together. */
import type { ClientTokens } from '#feature/deps'
import { Authorizations } from './authorizations.ts'
import type { IdTokenAlgorithm } from './client.ts'
import { ClientAuthentication } from './client-authentication.ts'
import { Clients } from './clients.ts'
import type { OAuthDeps } from './definitions.ts'
import { Grants } from './grants.ts'
import { IdTokenKeys } from './id-token-keys.ts'
import { IdTokens } from './id-tokens.ts'
import { Introspection } from './introspection.ts'
import type { OtherClients } from './metadata.ts'
import { MetadataClients } from './metadata-clients.ts'
import { Registration } from './registration.ts'
import { Resources } from './resources.ts'
import { TokenEndpoint } from './token-endpoint.ts'
import { Tokens } from './tokens.ts'

export class OAuthServer {
  readonly authentication: ClientAuthentication
  readonly authorizations: Authorizations
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
    this.authentication = new ClientAuthentication(deps, clients)
    this.grants = new Grants(deps, clients)
    this.authorizations = new Authorizations(deps, {
      clients,
      metadataClients,
      resources,
      grants: this.grants,
    })
    const { authentication, authorizations, grants } = this
    this.tokenEndpoint = new TokenEndpoint({
      ...{ authentication, authorizations, grants, resources, tokens, idTokens },
    })
    this.registration = new Registration(deps, clients, resources)
    this.introspection = new Introspection(deps, clients, resources, grants, signer)
  }
}
