/** Authorization requests (RFC 6749 §4.1.1, RFC 7636, OpenID Connect Core §3.1.2.1): what a client asks a user for. */
import { MULTI_FACTOR_POLICY } from '#core/accounts/sign-in-methods'
import type { ScopeDescriptions } from '#core/auth/scopes'
import { type Client, isPublic } from './client.ts'
import type { Resource } from './resource.ts'
import { OPENID_SCOPES, scopesOf } from './scopes.ts'

/** The parameters of a request. */
export interface AuthorizationParameters {
  readonly client_id?: string | undefined
  readonly redirect_uri?: string | undefined
  readonly response_type?: string | undefined
  readonly scope?: string | undefined
  readonly state?: string | undefined
  readonly code_challenge?: string | undefined
  readonly code_challenge_method?: string | undefined
  readonly nonce?: string | undefined
  readonly prompt?: string | undefined
  readonly max_age?: string | undefined
  readonly acr_values?: string | undefined
  readonly login_hint?: string | undefined
  readonly ui_locales?: string | undefined
  readonly organization?: string | undefined
  readonly resource?: readonly string[] | undefined
  readonly request?: string | undefined
  readonly request_uri?: string | undefined
  readonly dpop_jkt?: string | undefined
}

export const PROMPTS = ['none', 'login', 'consent', 'select_account'] as const

/** A request that is valid. */
export interface AuthorizationRequest {
  readonly clientId: string
  /** The URL of the client's metadata; absent for clients without. */
  readonly clientUrl?: string
  readonly redirectUri: string
  /** Whether the request named it: the token request must name it then, too. */
  readonly isRedirectUriGiven: boolean
  readonly state: string | null
  readonly scopes: readonly string[]
  readonly resource: string | null
  /** S256; `null` only for clients that are exempt from PKCE. */
  readonly codeChallenge: string | null
  /** The thumbprint of the key that the code is bound to (RFC 9449 §10); `null`: of none. */
  readonly jkt: string | null
  /** What the ID token repeats, so that the client knows its request. */
  readonly nonce: string | null
  readonly prompt: readonly string[]
  /** Seconds since the sign-in; `null`: any. */
  readonly maxAge: number | null
  /** Whether the user must have signed in with two factors. */
  readonly needsTwoFactors: boolean
  /** The e-mail that the page to sign in begins with; `null`: none. */
  readonly loginHint: string | null
  /** The languages of the pages of this request, the best first: tags of BCP 47. */
  readonly locales: readonly string[]
  /** The id of the organization that the access is to be limited to; `null`: the user decides. */
  readonly organization: string | null
  /** Milliseconds since the epoch. */
  readonly requestedAt: number
}

/** What is wrong with a request whose client and redirect URI are verified: an error that the client gets (RFC 6749 §4.1.2.1). */
export interface RequestError {
  readonly error: string
  readonly description: string
}

export const isError = (read: AuthorizationRequest | RequestError): read is RequestError => 'error' in read

/** SHA-256 in base64url. */
const DIGEST = /^[A-Za-z0-9_-]{43}$/

const problem = (error: string, description: string): RequestError => ({ error, description })

const challengeProblem = (
  { code_challenge: challenge, code_challenge_method: method }: AuthorizationParameters,
  client: Client,
): RequestError | null => {
  if (challenge === undefined)
    return client.requirePkce || isPublic(client) || method !== undefined
      ? problem('invalid_request', 'code_challenge is required')
      : null
  if (method !== 'S256') return problem('invalid_request', 'code_challenge_method must be S256')
  return DIGEST.test(challenge) ? null : problem('invalid_request', 'code_challenge is not valid')
}

const wordsOf = (text = ''): readonly string[] => text.split(' ').filter(each => each !== '')

const formProblem = (parameters: AuthorizationParameters, client: Client): RequestError | null => {
  const { response_type: type, max_age: maxAge, resource = [], dpop_jkt: jkt } = parameters
  if (parameters.request !== undefined) return problem('request_not_supported', 'request is not supported')
  if (parameters.request_uri !== undefined)
    return problem('request_uri_not_supported', 'request_uri is not supported')
  if (type === undefined) return problem('invalid_request', 'response_type is required')
  if (type !== 'code') return problem('unsupported_response_type', 'response_type must be code')
  if (!client.grantTypes.includes('authorization_code'))
    return problem('unauthorized_client', 'The client may not use this flow')
  if (maxAge !== undefined && !/^\d{1,9}$/.test(maxAge))
    return problem('invalid_request', 'max_age must be a number of seconds')
  const prompts = wordsOf(parameters.prompt)
  if (
    prompts.some(each => !(PROMPTS as readonly string[]).includes(each)) ||
    (prompts.includes('none') && prompts.length > 1)
  )
    return problem('invalid_request', 'prompt is not valid')
  if (resource.length > 1) return problem('invalid_target', 'resource must be given once')
  if (jkt !== undefined && !DIGEST.test(jkt)) return problem('invalid_request', 'dpop_jkt is not valid')
  return challengeProblem(parameters, client)
}

/** The scopes of a request that the client may ask for, and that the API of the token has. */
export const requestedScopes = (
  { scope }: Pick<AuthorizationParameters, 'scope'>,
  client: Client,
  known: ScopeDescriptions,
): readonly string[] => {
  const asked = scope === undefined ? client.scopes : scopesOf(scope)
  return asked.filter(each => client.scopes.includes(each) && Object.hasOwn(known, each))
}

/** The scopes that a token for an API can have, with what they allow. @param userScopes those of Gatehouse. */
export const knownScopes = (resource: Resource | null, userScopes: ScopeDescriptions): ScopeDescriptions => ({
  ...OPENID_SCOPES,
  ...(resource === null ? userScopes : resource.scopes),
})

/**
 * Reads a request whose client and redirect URI are verified.
 * @param resource of the request; `undefined`: there is no such resource.
 */
export const readRequest = (
  parameters: AuthorizationParameters,
  client: Client,
  redirectUri: string,
  resource: Resource | null | undefined,
  userScopes: ScopeDescriptions,
  now: number,
): AuthorizationRequest | RequestError => {
  const wrong = formProblem(parameters, client)
  if (wrong !== null) return wrong
  if (resource === undefined) return problem('invalid_target', 'resource is not known')
  const scopes = requestedScopes(parameters, client, knownScopes(resource, userScopes))
  if (scopes.length === 0) return problem('invalid_scope', 'No scope is left that the client may have')
  return {
    clientId: client.id,
    ...(client.documentUrl !== null && { clientUrl: client.documentUrl }),
    redirectUri,
    isRedirectUriGiven: parameters.redirect_uri !== undefined,
    state: parameters.state ?? null,
    scopes,
    resource: resource?.identifier ?? null,
    codeChallenge: parameters.code_challenge ?? null,
    jkt: parameters.dpop_jkt ?? null,
    nonce: parameters.nonce ?? null,
    prompt: wordsOf(parameters.prompt),
    maxAge: parameters.max_age === undefined ? null : Number(parameters.max_age),
    needsTwoFactors: wordsOf(parameters.acr_values).includes(MULTI_FACTOR_POLICY),
    loginHint: parameters.login_hint ?? null,
    locales: wordsOf(parameters.ui_locales),
    organization: parameters.organization?.toLowerCase() ?? null,
    requestedAt: now,
  }
}
