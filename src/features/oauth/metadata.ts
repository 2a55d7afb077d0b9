/** Metadata of the server (RFC 8414, OpenID Connect Discovery): what follows from the configuration, never from a request. */
import type { FeatureConfig } from '#feature/deps'
import { ASSERTION_ALGORITHMS } from './assertions.ts'
import { PROMPTS } from './authorization-request.ts'
import { AUTH_METHODS, GRANT_TYPES } from './client.ts'

/** What those need who only verify tokens. */
const verifierMetadata = ({ publicUrl }: FeatureConfig) => ({
  issuer: publicUrl,
  jwks_uri: `${publicUrl}/.well-known/jwks.json`,
})

/** Authentication of requests other than those for tokens: every method with a secret. */
const CONFIDENTIAL = AUTH_METHODS.filter(method => method !== 'none')

/** @param isOn `OAUTH`. */
export const serverMetadata = (config: FeatureConfig, isOn: boolean): object => {
  const { publicUrl } = config
  const reduced = verifierMetadata(config)
  if (!isOn) return reduced
  return {
    ...reduced,
    authorization_endpoint: `${publicUrl}/oauth/authorize`,
    token_endpoint: `${publicUrl}/oauth/token`,
    introspection_endpoint: `${publicUrl}/oauth/introspect`,
    revocation_endpoint: `${publicUrl}/oauth/revoke`,
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
