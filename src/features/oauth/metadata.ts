/** Metadata of the server (RFC 8414, OpenID Connect Discovery): what follows from the configuration, never from a request. */
import { MULTI_FACTOR_POLICY } from '#core/accounts/sign-in-methods'
import { PROOF_ALGORITHMS } from '#core/auth/dpop'
import type { ScopeDescriptions } from '#core/auth/scopes'
import type { FeatureConfig } from '#feature/deps'
import { ASSERTION_ALGORITHMS } from './assertions.ts'
import { PROMPTS } from './authorization-request.ts'
import { AUTH_METHODS, GRANT_TYPES, type IdTokenAlgorithm } from './client.ts'
import type { Resource } from './resource.ts'
import { OPENID_SCOPES } from './scopes.ts'

/** Of ID tokens and UserInfo. */
const CLAIMS = [
  ...['iss', 'sub', 'aud', 'exp', 'iat', 'sid', 'auth_time', 'nonce', 'acr', 'amr', 'at_hash'],
  ...['name', 'given_name', 'family_name', 'locale', 'updated_at', 'email', 'email_verified'],
]

/** What those need who only verify tokens. */
const verifierMetadata = ({ publicUrl }: FeatureConfig) => ({
  issuer: publicUrl,
  jwks_uri: `${publicUrl}/.well-known/jwks.json`,
})

/** Authentication of requests other than those for tokens: every method with a secret. */
const CONFIDENTIAL = AUTH_METHODS.filter(method => method !== 'none')

/** Which clients no administrator has made. */
export interface OtherClients {
  /** Whether clients can register themselves. */
  readonly register: boolean
  /** Whether their id can be the URL of their metadata. */
  readonly document: boolean
}

/** What the metadata say of the authorization server. */
export interface Announced {
  /** Of ID tokens. */
  readonly algorithms: readonly IdTokenAlgorithm[]
  readonly others: OtherClients
}

/** @param languages of the pages. @param server `null` with `OAUTH=off`. */
export const serverMetadata = (
  config: FeatureConfig,
  languages: readonly string[],
  server: Announced | null,
): object => {
  const { publicUrl } = config
  const reduced = verifierMetadata(config)
  if (server === null) return reduced
  const { algorithms, others } = server
  return {
    ...reduced,
    authorization_endpoint: `${publicUrl}/oauth/authorize`,
    device_authorization_endpoint: `${publicUrl}/oauth/device`,
    pushed_authorization_request_endpoint: `${publicUrl}/oauth/par`,
    require_pushed_authorization_requests: false,
    token_endpoint: `${publicUrl}/oauth/token`,
    userinfo_endpoint: `${publicUrl}/oauth/userinfo`,
    introspection_endpoint: `${publicUrl}/oauth/introspect`,
    ...(others.register && { registration_endpoint: `${publicUrl}/oauth/register` }),
    revocation_endpoint: `${publicUrl}/oauth/revoke`,
    client_id_metadata_document_supported: others.document,
    end_session_endpoint: `${publicUrl}/oauth/logout`,
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
    scopes_supported: Object.keys(OPENID_SCOPES),
    claims_supported: [...CLAIMS],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...algorithms],
    acr_values_supported: [MULTI_FACTOR_POLICY],
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    claims_parameter_supported: false,
    grant_types_supported: [...GRANT_TYPES],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    code_challenge_methods_supported: ['S256'],
    prompt_values_supported: [...PROMPTS],
    ui_locales_supported: [...languages],
    authorization_response_iss_parameter_supported: true,
    dpop_signing_alg_values_supported: [...PROOF_ALGORITHMS],
    token_endpoint_auth_methods_supported: [...AUTH_METHODS],
    token_endpoint_auth_signing_alg_values_supported: [...ASSERTION_ALGORITHMS],
    introspection_endpoint_auth_methods_supported: CONFIDENTIAL,
    introspection_endpoint_auth_signing_alg_values_supported: [...ASSERTION_ALGORITHMS],
    revocation_endpoint_auth_methods_supported: [...AUTH_METHODS],
    revocation_endpoint_auth_signing_alg_values_supported: [...ASSERTION_ALGORITHMS],
  }
}

const RESOURCE_PATH = '/.well-known/oauth-protected-resource'

/**
 * Where the metadata of a resource are (RFC 9728 §3.1): at its origin, and below the service if that has the same one.
 * @param identifier `null`: the service itself. @returns `null` for a URI without an origin.
 */
export const resourceMetadataUrl = (publicUrl: string, identifier: string | null): string | null => {
  if (identifier === null) return publicUrl + RESOURCE_PATH
  const { origin, pathname } = new URL(identifier)
  if (origin === 'null') return null
  const base = origin === new URL(publicUrl).origin ? publicUrl : origin
  return base + RESOURCE_PATH + (pathname === '/' ? '' : pathname)
}

/** Metadata of a protected resource (RFC 9728 §2). @param resource `null`: the service itself. */
export const resourceMetadata = (
  { publicUrl }: FeatureConfig,
  resource: Resource | null,
  userScopes: ScopeDescriptions,
) => ({
  resource: resource?.identifier ?? publicUrl,
  ...(resource !== null && { resource_name: resource.name }),
  authorization_servers: [publicUrl],
  scopes_supported: Object.keys(resource?.scopes ?? userScopes),
  bearer_methods_supported: ['header'],
  jwks_uri: `${publicUrl}/.well-known/jwks.json`,
})
