/** The client of OpenID Connect and OAuth 2.0. Import this module on demand: it loads `openid-client`. */
import { createPublicKey, type KeyObject, sign } from 'node:crypto'
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  type CryptoKey,
  type CustomFetch,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchProtectedResource,
  fetchUserInfo,
  PrivateKeyJwt,
  type ServerMetadata,
} from 'openid-client'
import { type Claims, claimsOf, subjectOf } from './claims.ts'
import type { Endpoints } from './presets.ts'
import { type fetchBy, type Given, ProviderError } from './provider-responses.ts'
import type { ClientCredential, Provider } from './provider-settings.ts'

/** What is kept of a flow for its callback. */
export interface FlowSecrets {
  /** PKCE (RFC 7636). */
  readonly verifier: string
  readonly nonce: string
}

/** A request to the authorization endpoint. */
export interface AuthorizationRequest extends FlowSecrets {
  readonly redirectUri: string
  readonly state: string
}

/** The parameters of a callback, whose `state` was verified. */
export interface AuthorizationResponse extends AuthorizationRequest {
  readonly parameters: URLSearchParams
}

/** Algorithms whose signatures need the provider's private key: no HS256, whose key a client also has, and no `none`. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
]

/** Seconds since a token was issued. It comes straight from the token endpoint; clocks differ. */
const MAX_AGE = 300
/** Seconds that a clock may be ahead. */
const TOLERANCE = 60

/** Seconds. */
const SIGNED_SECRET_LIFETIME = 300

/**
 * The method of the settings; else `client_secret_basic` (OIDC Core §9), and `client_secret_post` where the provider takes nothing else, as
 * GitHub.
 */
const secretAuth = (secret: string, { type, authMethod }: Provider): ClientAuth => {
  const [basic, post] = [ClientSecretBasic(secret), ClientSecretPost(secret)]
  if (authMethod !== null) return authMethod === 'client_secret_post' ? post : basic
  if (type === 'oauth2') return post
  return (server, ...rest) => {
    const { token_endpoint_auth_methods_supported: listed } = server
    const supported = Array.isArray(listed) ? listed : ['client_secret_basic']
    const usesPost = supported.includes('client_secret_post') && !supported.includes('client_secret_basic')
    return (usesPost ? post : basic)(server, ...rest)
  }
}

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

type SignedSecret = Extract<ClientCredential, { readonly kind: 'signedSecret' }>

/** Apple's client secret: a token, made for each request. */
const signedSecretAuth =
  ({ key, keyId, teamId }: SignedSecret, { clientId, issuer }: Provider): ClientAuth =>
  (_server, _client, body) => {
    const now = Math.floor(Date.now() / 1_000)
    const claims = { iss: teamId, iat: now, exp: now + SIGNED_SECRET_LIFETIME, aud: issuer, sub: clientId }
    const text = `${encoded({ alg: 'ES256', kid: keyId })}.${encoded(claims)}`
    const signature = sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' })
    body.set('client_id', clientId)
    body.set('client_secret', `${text}.${signature.toString('base64url')}`)
  }

/** @throws {Error} for a key of another kind. */
const cryptoKeyOf = (key: KeyObject): CryptoKey => {
  switch (createPublicKey(key).asymmetricKeyType) {
    case 'rsa':
      return key.toCryptoKey({ name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }, false, ['sign'])
    case 'ec':
      return key.toCryptoKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign'])
    default:
      return key.toCryptoKey('Ed25519', false, ['sign'])
  }
}

const authOf = (provider: Provider): ClientAuth => {
  const { credential } = provider
  switch (credential.kind) {
    case 'secret':
      return secretAuth(credential.secret, provider)
    case 'signedSecret':
      return signedSecretAuth(credential, provider)
    case 'privateKey': {
      const { key, keyId } = credential
      return PrivateKeyJwt({ key: cryptoKeyOf(key), ...(keyId !== undefined && { kid: keyId }) })
    }
  }
}

/** Plain HTTP is refused by the client of requests, unless OIDC_ALLOWED_HOSTS has the host. */
const EXTENSIONS = [enableNonRepudiationChecks, allowInsecureRequests]

/** The metadata that discovery would find. */
const metadataOf = (issuer: string, { authorization, token, userInfo }: Endpoints): ServerMetadata => ({
  issuer,
  authorization_endpoint: authorization,
  token_endpoint: token,
  userinfo_endpoint: userInfo,
})

/** The codes of `openid-client` for tokens and claims that do not confirm the user. */
const UNTRUSTED: ReadonlySet<unknown> = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_PARSE_ERROR',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
  'OAUTH_UNSUPPORTED_OPERATION',
])

interface Raised {
  readonly name?: unknown
  readonly code?: unknown
  readonly cause?: unknown
  readonly claim?: unknown
}

const asRaised = (value: unknown): Raised => (value ?? {}) as Raised

/** Whether the library raised an error itself. Its messages are constant; those of other errors, and causes, contain tokens and claims. */
const isOfLibrary = (error: unknown): error is Error & Raised =>
  error instanceof Error && String(asRaised(error).code).startsWith('OAUTH_')

const providerErrorOf = (error: unknown): ProviderError => {
  const { code, cause, name } = asRaised(error)
  for (const each of [error, cause]) if (each instanceof ProviderError) return each
  const known = [cause, error].find(isOfLibrary)
  if (known !== undefined) {
    if (!UNTRUSTED.has(known.code)) return new ProviderError('broken', known.message)
    // The code of another flow: a client can inject it where the provider does not verify PKCE.
    const isInjected =
      known.code === 'OAUTH_JWT_CLAIM_COMPARISON_FAILED' && asRaised(known.cause).claim === 'nonce'
    return new ProviderError(isInjected ? 'refused' : 'untrusted', known.message)
  }
  if (code === 'ERR_INVALID_ARG_VALUE') return new ProviderError('untrusted', 'a JWT is not base64url')
  return new ProviderError('broken', `unexpected: ${String(asRaised(cause).name ?? name)}`)
}

/** The configuration of a provider. @throws {ProviderError} `broken`, also if the provider calls itself something else. */
export const discover = async (
  provider: Provider,
  fetch: ReturnType<typeof fetchBy>,
): Promise<Configuration> => {
  const { issuer, clientId, endpoints } = provider
  if (endpoints !== null) {
    const configuration = new Configuration(metadataOf(issuer, endpoints), clientId, {}, authOf(provider))
    configuration[customFetch] = fetch as CustomFetch
    for (const extend of EXTENSIONS) extend(configuration)
    return configuration
  }
  const url = new URL(issuer)
  let configuration: Configuration
  try {
    configuration = await discovery(url, clientId, {}, authOf(provider), {
      [customFetch]: fetch as CustomFetch,
      execute: EXTENSIONS,
    })
  } catch (error) {
    const { reason } = providerErrorOf(error)
    throw new ProviderError('broken', reason, 'discovery')
  }
  const metadata = configuration.serverMetadata()
  // To the letter: identities are kept by it. The library makes exceptions for Microsoft.
  if (metadata.issuer !== issuer) throw new ProviderError('broken', 'another issuer', 'discovery')
  if (metadata.token_endpoint === undefined)
    throw new ProviderError('broken', 'no token_endpoint', 'discovery')
  // The browser opens it: not `javascript:`, for example.
  const { authorization_endpoint: endpoint } = metadata
  const authorization = typeof endpoint === 'string' ? URL.parse(endpoint) : null
  if (authorization?.protocol !== 'https:' && authorization?.protocol !== url.protocol)
    throw new ProviderError('broken', 'no authorization_endpoint', 'discovery')
  return configuration
}

export const authorizationUrl = async (
  configuration: Configuration,
  { scopes, prompt, responseMode, usesNonce }: Provider,
  { redirectUri, state, nonce, verifier }: AuthorizationRequest,
): Promise<string> =>
  buildAuthorizationUrl(configuration, {
    redirect_uri: redirectUri,
    scope: scopes.join(' '),
    state,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...(usesNonce && { nonce }),
    ...(prompt !== null && { prompt }),
    ...(responseMode === 'form_post' && { response_mode: responseMode }),
  }).href

/** Parameters of a response that may occur only once, so that no two readers take different values. */
const RESPONSE_PARAMETERS = ['code', 'state', 'iss', 'error', 'response', 'id_token', 'token']

/** Whether the parameters of a callback are a response of this provider (RFC 9207). */
export const isResponseOf = (configuration: Configuration, parameters: URLSearchParams): boolean => {
  const { issuer, authorization_response_iss_parameter_supported: namesIssuer } =
    configuration.serverMetadata()
  if (RESPONSE_PARAMETERS.some(name => parameters.getAll(name).length > 1)) return false
  if (!parameters.get('code') === !parameters.get('error')) return false
  const iss = parameters.get('iss')
  return iss === null ? namesIssuer !== true : iss === issuer
}

const headerOf = (token: string): Given => {
  try {
    return JSON.parse(Buffer.from(token.split('.', 1)[0] ?? '', 'base64url').toString())
  } catch {
    return {}
  }
}

/** What `openid-client` does not verify of an ID token (docs/design.md, "Other providers"). @throws {ProviderError} */
const assertToken = ({ tenant, clientId }: Provider, token: string, claims: Given): void => {
  const refuse = (what: string): never => {
    throw new ProviderError('untrusted', `unexpected ID Token ${what}`)
  }
  if (!ALGORITHMS.includes(String(headerOf(token).alg))) refuse('"alg" (algorithm) header parameter')
  // The library verifies it with several audiences only.
  if (claims.azp !== undefined && claims.azp !== clientId) refuse('"azp" (authorized party) claim value')
  // The real time, with which `exp` is compared too.
  const age = Date.now() / 1_000 - Number(claims.iat)
  if (!(age <= MAX_AGE && age >= -TOLERANCE)) refuse('"iat" (issued at) claim value: do the clocks differ?')
  if (tenant !== null && claims.tid !== tenant) refuse('"tid" (tenant) claim value')
}

/** @throws {ProviderError} */
const requireSubject = (given: unknown): string => {
  const subject = subjectOf(given)
  if (subject === null) throw new ProviderError('untrusted', 'unexpected "sub" (subject) value')
  return subject
}

const claimsOfResponse = async (
  configuration: Configuration,
  provider: Provider,
  { parameters, redirectUri, state, nonce, verifier }: AuthorizationResponse,
): Promise<Claims> => {
  const url = new URL(redirectUri)
  url.search = parameters.toString()
  const checks = { pkceCodeVerifier: verifier, expectedState: state }
  if (provider.endpoints !== null) {
    const { access_token: token } = await authorizationCodeGrant(configuration, url, checks)
    return claimsOfAccount(configuration, provider, provider.endpoints, token)
  }
  const tokens = await authorizationCodeGrant(configuration, url, {
    ...checks,
    ...(provider.usesNonce && { expectedNonce: nonce }),
    idTokenExpected: true,
  })
  const claims = (tokens.claims() ?? {}) as Given
  assertToken(provider, tokens.id_token ?? '', claims)
  const subject = requireSubject(claims.sub)
  const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined
  // Verifies that it is about the same subject.
  const info = hasUserInfo ? await fetchUserInfo(configuration, tokens.access_token, subject) : {}
  return claimsOf(provider, subject, claims, info as Given)
}

/** Redeems the code of a callback. @throws {ProviderError} */
export const redeem = async (...parameters: Parameters<typeof claimsOfResponse>): Promise<Claims> => {
  try {
    return await claimsOfResponse(...parameters)
  } catch (error) {
    throw providerErrorOf(error)
  }
}

const read = async (configuration: Configuration, token: string, url: string): Promise<unknown> => {
  const headers = new Headers({ accept: 'application/json' })
  const response = await fetchProtectedResource(configuration, token, new URL(url), 'GET', null, headers)
  return response.json()
}

interface ListedEmail {
  readonly email?: unknown
  readonly primary?: unknown
  readonly verified?: unknown
}

/** The account of a provider without ID tokens. The request for it is the proof that the code was this user's. */
const claimsOfAccount = async (
  configuration: Configuration,
  provider: Provider,
  { userInfo, emails }: Endpoints,
  token: string,
): Promise<Claims> => {
  const { subject: subjectName = 'sub', name = 'name', ...names } = provider.claims
  const account = (await read(configuration, token, userInfo)) as Given
  const given = account[subjectName]
  const subject = requireSubject(Number.isSafeInteger(given) ? String(given) : given)
  const contact =
    emails === undefined
      ? {
          email: account[names.email ?? 'email'],
          email_verified: account[names.emailVerified ?? 'email_verified'],
        }
      : primaryOf(await read(configuration, token, emails))
  return claimsOf(provider, subject, { ...contact, name: account[name] })
}

const primaryOf = (list: unknown): Given => {
  const primary = Array.isArray(list) ? list.find((each: ListedEmail) => each?.primary === true) : undefined
  return { email: primary?.email, email_verified: primary?.verified }
}
