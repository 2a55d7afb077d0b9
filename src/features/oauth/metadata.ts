/** Metadata of the server (RFC 8414, OpenID Connect Discovery): what follows from the configuration, never from a request. */
import { MULTI_FACTOR_POLICY } from '#core/accounts/sign-in-methods'
import type { FeatureConfig } from '#feature/deps'
import { ASSERTION_ALGORITHMS } from './assertions.ts'
import { PROMPTS } from './authorization-request.ts'
import { AUTH_METHODS, GRANT_TYPES, type IdTokenAlgorithm } from './client.ts'
import { OPENID_SCOPES } from './scopes.ts'

/** Of ID tokens and UserInfo. */
const CLAIMS = [
  ...['iss', 'sub', 'aud', 'exp', 'iat', 'auth_time', 'nonce', 'acr', 'amr', 'at_hash'],
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

/** @param server `null` with `OAUTH=off`. */
export const serverMetadata = (config: FeatureConfig, server: Announced | null): object => {
  const { publicUrl } = config
  const reduced = verifierMetadata(config)
  if (server === null) return reduced
  const { algorithms, others } = server
  return {
    ...reduced,
    authorization_endpoint: `${publicUrl}/oauth/authorize`,
    token_endpoint: `${publicUrl}/oauth/token`,
    userinfo_endpoint: `${publicUrl}/oauth/userinfo`,
    introspection_endpoint: `${publicUrl}/oauth/introspect`,
    ...(others.register && { registration_endpoint: `${publicUrl}/oauth/register` }),
    revocation_endpoint: `${publicUrl}/oauth/revoke`,
    client_id_metadata_document_supported: others.document,
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
    authorization_response_iss_parameter_supported: true,
    token_endpoint_auth_methods_supported: [...AUTH_METHODS],
    token_endpoint_auth_signing_alg_values_supported: [...ASSERTION_ALGORITHMS],
    introspection_endpoint_auth_methods_supported: CONFIDENTIAL,
    introspection_endpoint_auth_signing_alg_values_supported: [...ASSERTION_ALGORITHMS],
    revocation_endpoint_auth_methods_supported: [...AUTH_METHODS],
    revocation_endpoint_auth_signing_alg_values_supported: [...ASSERTION_ALGORITHMS],
  }
}
