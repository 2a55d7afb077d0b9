/** Clients of the authorization server (RFC 7591 §2): applications that act for users, and programs that act for themselves. */

/** RFC 8628 §3.4. */
export const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'

export const GRANT_TYPES = ['authorization_code', 'refresh_token', 'client_credentials', DEVICE_CODE] as const

export type GrantType = (typeof GRANT_TYPES)[number]

export const AUTH_METHODS = ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const

/** Of ID tokens. */
export const ID_TOKEN_ALGORITHMS = ['RS256', 'ES256', 'EdDSA'] as const

export type IdTokenAlgorithm = (typeof ID_TOKEN_ALGORITHMS)[number]

export type AuthMethod = (typeof AUTH_METHODS)[number]

/** A public key (RFC 7517). */
export type Jwk = Readonly<Record<string, unknown>> & { readonly kty: string }

/** What administrators choose. */
export interface ClientMetadata {
  readonly name: string
  readonly redirectUris: readonly string[]
  readonly grantTypes: readonly GrantType[]
  /** How the client authenticates; `none`: it keeps no secret, and is public. */
  readonly authMethod: AuthMethod
  /** The keys of `private_key_jwt`. */
  readonly jwks: { readonly keys: readonly Jwk[] } | null
  /** Where these keys are instead. */
  readonly jwksUri: string | null
  /** What the client may ask users for. */
  readonly scopes: readonly string[]
  /** Scopes of admin keys that tokens of the client's own may have. */
  readonly adminScopes: readonly string[]
  /** Whether users are not asked for their consent. */
  readonly firstParty: boolean
  /** Whether the code flow needs PKCE. Only confidential clients can be exempt. */
  readonly requirePkce: boolean
  /** Where users return after a logout that the client began. */
  readonly postLogoutRedirectUris: readonly string[]
  /** Learns of the end of sessions; `null`: the client does not. */
  readonly backchannelLogoutUri: string | null
  /** Whether the client must push its authorization requests (RFC 9126). */
  readonly requirePushedRequests: boolean
  readonly idTokenAlgorithm: IdTokenAlgorithm
  readonly uri: string | null
  readonly policyUri: string | null
  readonly termsUri: string | null
  /** Whether it gets nothing, and its tokens are refused. */
  readonly blocked: boolean
}

/** Who has made a client: an administrator, or the client itself, by registration or by its metadata document. */
export type ClientOrigin = 'administrator' | 'registered' | 'document'

/** Times are milliseconds since the epoch. */
export interface Client extends ClientMetadata {
  readonly id: string
  readonly origin: ClientOrigin
  /** The URL of its metadata, by which clients and ID tokens know it; `null`: they know it by its id. */
  readonly documentUrl: string | null
  readonly createdAt: number
  readonly updatedAt: number
  /** Until when the former secret is valid beside the one that follows it; `null`: there is none. */
  readonly formerSecretExpiresAt: number | null
}

/** A client with the digests of its secrets. */
export interface StoredClient extends Client {
  readonly secretDigest: string | null
  readonly formerDigest: string | null
}

export const isPublic = ({ authMethod }: Pick<ClientMetadata, 'authMethod'>): boolean => authMethod === 'none'

export const hasSecret = ({ authMethod }: Pick<ClientMetadata, 'authMethod'>): boolean =>
  authMethod === 'client_secret_basic' || authMethod === 'client_secret_post'

/** What requests and ID tokens call a client: `client_id`. */
export const clientIdOf = ({ documentUrl, id }: Pick<Client, 'documentUrl' | 'id'>): string =>
  documentUrl ?? id

/** What a client is registered with; only its name is needed. */
export type NewClientOptions = Pick<ClientMetadata, 'name'> & Partial<ClientMetadata>

/** By default a web application of users, which authenticates with a secret. */
export const newClientMetadata = (options: NewClientOptions): ClientMetadata => ({
  redirectUris: [],
  grantTypes: ['authorization_code', 'refresh_token'],
  authMethod: 'client_secret_basic',
  jwks: null,
  jwksUri: null,
  scopes: [],
  adminScopes: [],
  firstParty: false,
  requirePkce: true,
  postLogoutRedirectUris: [],
  backchannelLogoutUri: null,
  requirePushedRequests: false,
  idTokenAlgorithm: 'RS256',
  uri: null,
  policyUri: null,
  termsUri: null,
  blocked: false,
  ...options,
})

/** Clients of administrators in the store, and as many of other origin. */
export const MAX_CLIENTS = 10_000

/** Milliseconds without a new grant after which a client goes that no administrator has made. */
export const UNUSED_LIFETIME = 30 * 86_400_000

/** Whether nobody has checked who the client is. */
export const isUnverified = ({ origin }: Pick<Client, 'origin'>): boolean => origin !== 'administrator'

const timestamp = (milliseconds: number): string => new Date(milliseconds).toISOString()

/** What administrators and clients choose. */
export const metadataOf = (client: Client): ClientMetadata => ({
  name: client.name,
  redirectUris: client.redirectUris,
  grantTypes: client.grantTypes,
  authMethod: client.authMethod,
  jwks: client.jwks,
  jwksUri: client.jwksUri,
  scopes: client.scopes,
  adminScopes: client.adminScopes,
  firstParty: client.firstParty,
  requirePkce: client.requirePkce,
  postLogoutRedirectUris: client.postLogoutRedirectUris,
  backchannelLogoutUri: client.backchannelLogoutUri,
  requirePushedRequests: client.requirePushedRequests,
  idTokenAlgorithm: client.idTokenAlgorithm,
  uri: client.uri,
  policyUri: client.policyUri,
  termsUri: client.termsUri,
  blocked: client.blocked,
})

export const serializeClient = (client: Client) => {
  const { createdAt, updatedAt, formerSecretExpiresAt } = client
  return {
    id: client.id,
    origin: client.origin,
    documentUrl: client.documentUrl,
    ...metadataOf(client),
    formerSecretExpiresAt: formerSecretExpiresAt === null ? null : timestamp(formerSecretExpiresAt),
    createdAt: timestamp(createdAt),
    updatedAt: timestamp(updatedAt),
  }
}
