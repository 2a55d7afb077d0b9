/** The setting OIDC_PROVIDERS: a list of providers, checked at the start. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { Errors } from '@sinclair/typebox/errors'
import { type Reader, readFile, SettingError } from '#base/settings/readers'
import {
  type ClaimNames,
  type Endpoints,
  microsoftIssuer,
  PRESETS,
  PROPERTIES,
  type ProviderEntry,
} from './presets.ts'

/** What the client proves itself with at the token endpoint. */
export type ClientCredential =
  | { readonly kind: 'secret'; readonly secret: string }
  /** `private_key_jwt` (OIDC Core §9). */
  | { readonly kind: 'privateKey'; readonly key: KeyObject; readonly keyId: string | undefined }
  /** A client secret that is a token signed with ES256. */
  | {
      readonly kind: 'signedSecret'
      readonly key: KeyObject
      readonly keyId: string
      readonly teamId: string
    }

export interface Provider {
  readonly id: string
  readonly name: string
  readonly type: 'oidc' | 'oauth2'
  /** Exactly as the provider names itself. With the subject it identifies a user there. */
  readonly issuer: string
  readonly clientId: string
  readonly credential: ClientCredential
  /** How a client secret is sent to the token endpoint (OIDC Core §9); `null`: as the provider announces. */
  readonly authMethod: 'client_secret_basic' | 'client_secret_post' | null
  readonly scopes: readonly string[]
  /** Whether an unknown identity may open an account. */
  readonly signUp: boolean
  /** The domains of addresses for whose owners it vouches, in lower case. */
  readonly authoritativeFor: '*' | readonly string[]
  /** A claim with a further domain that it vouches for. */
  readonly domainClaim: string | null
  readonly link: 'ask' | 'verified-email'
  readonly prompt: string | null
  readonly responseMode: 'query' | 'form_post'
  /** Whether the ID token must have the nonce of the request. */
  readonly usesNonce: boolean
  /** The values of `amr` and `acr` that count as two factors. */
  readonly multiFactor: { readonly amr: readonly string[]; readonly acr: readonly string[] }
  /** Required in the claim `tid`; `null` for providers other than Microsoft. */
  readonly tenant: string | null
  readonly endpoints: Endpoints | null
  readonly claims: ClaimNames
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A property as another name may mean it: `client_secret` and `clientsecret` are `clientSecret`. */
const simplified = (name: string): string => name.replace(/[^a-z]/gi, '').toLowerCase()

/** @returns what to do about an unknown property. */
const hintFor = (property: string): string => {
  const meant = Object.keys(PROPERTIES).find(name => simplified(name) === simplified(property))
  return meant === undefined
    ? `leave it out, or choose one of ${Object.keys(PROPERTIES).join(', ')}`
    : `write ${meant}`
}

/** Properties that mean nothing with the other type. */
const OF_TYPE: Partial<Readonly<Record<keyof ProviderEntry, Provider['type']>>> = {
  tenant: 'oidc',
  domainClaim: 'oidc',
  nonce: 'oidc',
  isMultiFactor: 'oidc',
  endpoints: 'oauth2',
  claims: 'oauth2',
}

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

const isProtected = (text: string): boolean => {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || /[?#\s]/.test(text)) return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.test(url.hostname))
}

/** @throws {SettingError} with the sentence about a provider, without its values: one may be a secret in the wrong place. */
const refuse = (provider: string, problem: string): never => {
  throw new SettingError(`has a mistake in the provider ${provider}: ${problem}`)
}

const DEFAULTS = {
  type: 'oidc',
  scopes: ['openid', 'email', 'profile'],
  signUp: true,
  authoritativeFor: [],
  link: 'ask',
  responseMode: 'query',
  nonce: true,
  isMultiFactor: {},
  claims: {},
} satisfies ProviderEntry

type Entry = ProviderEntry & Required<Pick<ProviderEntry, 'id' | keyof typeof DEFAULTS>>

const isProperty = (name: string): name is keyof ProviderEntry => Object.hasOwn(PROPERTIES, name)

const isValid = (property: keyof ProviderEntry, value: unknown): boolean =>
  Errors(PROPERTIES[property][0], value).First() === undefined

/** Checks what each property is. @returns the entry with its preset and the defaults. */
const entryOf = (given: unknown, index: number): Entry => {
  const position = `at position ${index + 1}`
  if (!isObject(given)) return refuse(position, 'it must be an object')
  const { id = '', preset = '' } = given as ProviderEntry
  if (!isValid('id', id)) return refuse(position, `id must be ${PROPERTIES.id[1]}`)
  for (const [property, value] of Object.entries(given)) {
    if (!isProperty(property))
      return refuse(id, `there is no property ${JSON.stringify(property)}: ${hintFor(property)}`)
    if (!isValid(property, value)) return refuse(id, `${property} must be ${PROPERTIES[property][1]}`)
  }
  const own: ProviderEntry = { ...PRESETS[preset], ...given }
  const entry = { ...DEFAULTS, ...own, id }
  for (const [property, type] of Object.entries(OF_TYPE))
    if (Object.hasOwn(own, property) && type !== entry.type)
      return refuse(id, `${property} is for type ${type}`)
  return entry
}

const fileOf = (provider: string, property: string, file: string): string => {
  try {
    return readFile(file)
  } catch (error) {
    return refuse(provider, `${property} ${(error as Error).message}`)
  }
}

const keyOf = (provider: string, pem: string): KeyObject => {
  try {
    return createPrivateKey(pem)
  } catch {
    return refuse(provider, 'privateKey must be a private key in PEM')
  }
}

const isP256 = ({ asymmetricKeyDetails: details }: KeyObject): boolean => details?.namedCurve === 'prime256v1'

/** Whether the key signs RS256, ES256 or EdDSA. */
const isUsable = (key: KeyObject): boolean => {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  return type === 'ed25519' || isP256(key) || (type === 'rsa' && (details?.modulusLength ?? 0) >= 2_048)
}

const keyCredentialOf = (entry: Entry): ClientCredential => {
  const { id, preset, privateKey, privateKeyFile, tokenEndpointAuthMethod, keyId, teamId } = entry
  if (tokenEndpointAuthMethod !== undefined)
    return refuse(id, 'tokenEndpointAuthMethod is for a client secret: leave it out with a private key')
  const key = keyOf(id, privateKey ?? fileOf(id, 'privateKeyFile', privateKeyFile as string))
  if (preset === 'apple') {
    if (!isP256(key)) return refuse(id, 'privateKey must be for P-256')
    if (keyId === undefined || teamId === undefined) return refuse(id, 'it needs keyId and teamId')
    return { kind: 'signedSecret', key, keyId, teamId }
  }
  if (teamId !== undefined) return refuse(id, 'teamId is for the preset apple')
  if (!isUsable(key))
    return refuse(id, 'privateKey must be for Ed25519, P-256, or RSA with at least 2048 bits')
  return { kind: 'privateKey', key, keyId }
}

const credentialOf = (entry: Entry): ClientCredential => {
  const { id, clientSecret, clientSecretFile, privateKey, privateKeyFile, keyId, teamId } = entry
  const credentials = [clientSecret, clientSecretFile, privateKey, privateKeyFile]
  if (credentials.filter(each => each !== undefined).length !== 1)
    return refuse(id, 'it needs one of clientSecret, clientSecretFile, privateKey and privateKeyFile')
  if (clientSecret === undefined && clientSecretFile === undefined) return keyCredentialOf(entry)
  if (keyId !== undefined || teamId !== undefined) return refuse(id, 'keyId and teamId are for a private key')
  const secret = clientSecret ?? fileOf(id, 'clientSecretFile', clientSecretFile as string)
  return secret === ''
    ? refuse(id, 'clientSecretFile names a file that is empty')
    : { kind: 'secret', secret }
}

const issuerOf = ({ id, issuer, preset, tenant }: Entry): string => {
  if (preset === 'microsoft') {
    if (issuer !== undefined) return refuse(id, 'issuer follows from tenant: leave it out')
    if (tenant === undefined) return refuse(id, 'tenant is required: the id of one tenant')
    return microsoftIssuer(tenant)
  }
  const named = issuer ?? refuse(id, 'issuer is required')
  if (!isProtected(named))
    return refuse(id, 'issuer must be a URL with https, without query: http is for localhost only')
  if (/^https:\/\/login\.microsoftonline\.com\/(?:common|organizations|consumers)\//.test(named))
    return refuse(id, 'issuer must name one tenant: with all tenants anybody could be anybody')
  return named
}

const endpointsOf = ({ id, type, endpoints }: Entry): Endpoints | null => {
  if (type !== 'oauth2') return null
  const { authorization, token, userInfo } = (endpoints ?? {}) as Partial<Endpoints>
  if (authorization === undefined || token === undefined || userInfo === undefined)
    return refuse(id, 'type oauth2 needs endpoints {authorization, token, userInfo}')
  for (const url of Object.values(endpoints as Endpoints))
    if (!isProtected(url))
      return refuse(id, 'endpoints must be URLs with https, without query: http is for localhost only')
  return endpoints as Endpoints
}

const domainsOf = ({ id, authoritativeFor, domainClaim, link }: Entry): Provider['authoritativeFor'] => {
  if (link === 'verified-email' && authoritativeFor.length === 0 && domainClaim === undefined)
    return refuse(id, 'link verified-email needs authoritativeFor: it links only e-mails of these domains')
  return authoritativeFor === '*' ? '*' : authoritativeFor.map(domain => domain.toLowerCase())
}

const scopesOf = ({ id, type, scopes }: Entry): readonly string[] =>
  type === 'oidc' && !scopes.includes('openid') ? refuse(id, 'scopes must have openid') : scopes

const providerOf = (given: unknown, index: number): Provider => {
  const entry = entryOf(given, index)
  const { id, type, name, clientId, signUp, link, responseMode, nonce, isMultiFactor, claims } = entry
  return {
    id,
    name: name ?? refuse(id, 'name is required'),
    type,
    issuer: issuerOf(entry),
    clientId: clientId ?? refuse(id, 'clientId is required'),
    credential: credentialOf(entry),
    authMethod: entry.tokenEndpointAuthMethod ?? null,
    scopes: scopesOf(entry),
    signUp,
    authoritativeFor: domainsOf(entry),
    domainClaim: entry.domainClaim ?? null,
    link,
    prompt: entry.prompt ?? null,
    responseMode,
    usesNonce: type === 'oidc' && nonce,
    multiFactor: { amr: isMultiFactor.amr ?? [], acr: isMultiFactor.acr ?? [] },
    tenant: entry.tenant ?? null,
    endpoints: endpointsOf(entry),
    claims,
  }
}

const NO_JSON = 'must be a JSON list of providers, or the path of a file with one'

/** Reads the list: JSON, or the path of a file. @throws {SettingError} with the first mistake. */
export const providersReader: Reader<readonly Provider[]> = value => {
  const text = /^[[{]/.test(value) ? value : readFile(value)
  let list: unknown
  try {
    list = JSON.parse(text)
  } catch {
    throw new SettingError(NO_JSON)
  }
  if (!Array.isArray(list)) throw new SettingError(NO_JSON)
  const providers = list.map(providerOf)
  const ids = providers.map(({ id }) => id)
  const twice = ids.find((id, index) => ids.indexOf(id) !== index)
  if (twice !== undefined) throw new SettingError(`has two providers with the id ${twice}`)
  return providers
}
