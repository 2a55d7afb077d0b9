/** The setting OIDC_PROVIDERS: a list of providers, checked at the start. Nothing here loads a library. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { type Reader, readFile, SettingError } from '../config/readers.ts'
import { type ClaimNames, type Endpoints, microsoftIssuer, PRESETS, type ProviderEntry } from './presets.ts'

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
  /** The values of `amr` and `acr` that count as two factors. */
  readonly multiFactor: { readonly amr: readonly string[]; readonly acr: readonly string[] }
  /** Required in the claim `tid`; `null` for providers other than Microsoft. */
  readonly tenant: string | null
  readonly endpoints: Endpoints | null
  readonly claims: ClaimNames
}

type Check = (value: unknown) => boolean

const isText: Check = value => typeof value === 'string' && value !== ''
const isTexts: Check = value => Array.isArray(value) && value.every(isText)
const isObjectOf =
  (properties: Readonly<Record<string, Check>>): Check =>
  value =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries(value).every(([name, each]) => Object.hasOwn(properties, name) && properties[name]?.(each))

/** Every property with what it must be. */
const PROPERTIES: Readonly<Record<keyof ProviderEntry, readonly [check: Check, must: string]>> = {
  id: [value => /^[a-z0-9][a-z0-9-]{0,31}$/.test(String(value)), 'lower-case letters, digits and hyphens'],
  preset: [value => Object.hasOwn(PRESETS, String(value)), `one of ${Object.keys(PRESETS).join(', ')}`],
  type: [value => value === 'oidc' || value === 'oauth2', 'oidc or oauth2'],
  name: [isText, 'a text'],
  issuer: [isText, 'a URL'],
  clientId: [isText, 'a text'],
  clientSecret: [isText, 'a text'],
  clientSecretFile: [isText, 'a path'],
  privateKey: [isText, 'a private key in PEM'],
  privateKeyFile: [isText, 'a path'],
  keyId: [isText, 'a text'],
  teamId: [isText, 'a text'],
  tenant: [
    value => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(String(value)),
    'the id of a tenant',
  ],
  scopes: [isTexts, 'a list of texts'],
  signUp: [value => typeof value === 'boolean', 'true or false'],
  authoritativeFor: [value => value === '*' || isTexts(value), '"*" or a list of domains'],
  domainClaim: [isText, 'the name of a claim'],
  link: [value => value === 'ask' || value === 'verified-email', 'ask or verified-email'],
  prompt: [isText, 'a text'],
  responseMode: [value => value === 'query' || value === 'form_post', 'query or form_post'],
  isMultiFactor: [isObjectOf({ amr: isTexts, acr: isTexts }), '{amr?, acr?} with lists of texts'],
  endpoints: [
    isObjectOf({ authorization: isText, token: isText, userInfo: isText, emails: isText }),
    '{authorization, token, userInfo, emails?} with URLs',
  ],
  claims: [
    isObjectOf({ subject: isText, email: isText, emailVerified: isText, name: isText }),
    '{subject?, email?, emailVerified?, name?} with names of properties',
  ],
}

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

const isProtected = (text: string): boolean => {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.test(url.hostname))
}

/** @throws {SettingError} with the sentence about a provider, without its values: one may be a secret in the wrong place. */
const refuse = (provider: string, problem: string): never => {
  throw new SettingError(`has a mistake in the provider ${provider}: ${problem}`)
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

const credentialOf = (id: string, entry: Partial<ProviderEntry>): ClientCredential => {
  const { clientSecret, clientSecretFile, privateKey, privateKeyFile, keyId, teamId } = entry
  const given = [clientSecret, clientSecretFile, privateKey, privateKeyFile].filter(
    each => each !== undefined,
  )
  if (given.length !== 1)
    return refuse(id, 'it needs one of clientSecret, clientSecretFile, privateKey and privateKeyFile')
  if (clientSecret !== undefined) return { kind: 'secret', secret: clientSecret }
  if (clientSecretFile !== undefined) {
    const secret = fileOf(id, 'clientSecretFile', clientSecretFile)
    return secret === ''
      ? refuse(id, 'clientSecretFile names a file that is empty')
      : { kind: 'secret', secret }
  }
  const key = keyOf(id, privateKey ?? fileOf(id, 'privateKeyFile', privateKeyFile as string))
  if (entry.preset !== 'apple') return { kind: 'privateKey', key, keyId }
  if (keyId === undefined || teamId === undefined) return refuse(id, 'it needs keyId and teamId')
  return { kind: 'signedSecret', key, keyId, teamId }
}

const issuerOf = (id: string, { issuer, preset, tenant }: Partial<ProviderEntry>): string => {
  const named = preset === 'microsoft' && tenant !== undefined ? microsoftIssuer(tenant) : issuer
  if (named === undefined)
    return refuse(
      id,
      preset === 'microsoft' ? 'tenant is required: the id of one tenant' : 'issuer is required',
    )
  if (!isProtected(named))
    return refuse(id, 'issuer must be a URL with https, without query: http is for localhost only')
  if (/^https:\/\/login\.microsoftonline\.com\/(?:common|organizations|consumers)\//.test(named))
    return refuse(id, 'issuer must name one tenant: with all tenants anybody could be anybody')
  return named
}

const checkProperties = (id: string, entry: object): void => {
  for (const [property, value] of Object.entries(entry)) {
    const rule = Object.hasOwn(PROPERTIES, property) ? PROPERTIES[property as keyof ProviderEntry] : undefined
    if (rule === undefined) return refuse(id, `there is no property ${JSON.stringify(property)}`)
    const [check, must] = rule
    if (!check(value)) return refuse(id, `${property} must be ${must}`)
  }
}

const endpointsOf = (id: string, { type, endpoints }: Partial<ProviderEntry>): Endpoints | null => {
  if (type !== 'oauth2') return endpoints === undefined ? null : refuse(id, 'endpoints are for type oauth2')
  const { authorization, token, userInfo } = (endpoints ?? {}) as Partial<Endpoints>
  if (authorization === undefined || token === undefined || userInfo === undefined)
    return refuse(id, 'type oauth2 needs endpoints {authorization, token, userInfo}')
  for (const url of Object.values(endpoints as Endpoints))
    if (!isProtected(url))
      return refuse(id, 'endpoints must be URLs with https, without query: http is for localhost only')
  return endpoints as Endpoints
}

const required = (id: string, property: 'name' | 'clientId', entry: Partial<ProviderEntry>): string =>
  entry[property] ?? refuse(id, `${property} is required`)

const domainsOf = ({ authoritativeFor = [] }: Partial<ProviderEntry>): Provider['authoritativeFor'] =>
  authoritativeFor === '*' ? '*' : authoritativeFor.map(domain => domain.trim().toLowerCase())

const providerOf = (given: unknown, index: number): Provider => {
  const position = `at position ${index + 1}`
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return refuse(position, 'it must be an object')
  const { id = '', preset } = given as Partial<ProviderEntry>
  if (!PROPERTIES.id[0](id)) return refuse(position, `id must be ${PROPERTIES.id[1]}`)
  checkProperties(id, given)
  const entry = { ...PRESETS[preset ?? ''], ...given } as Partial<ProviderEntry>
  const { type = 'oidc', scopes = ['openid', 'email', 'profile'], isMultiFactor = {} } = entry
  if (type === 'oidc' && !scopes.includes('openid')) return refuse(id, 'scopes must have openid')
  return {
    id,
    name: required(id, 'name', entry),
    type,
    issuer: issuerOf(id, entry),
    clientId: required(id, 'clientId', entry),
    credential: credentialOf(id, entry),
    scopes,
    signUp: entry.signUp ?? true,
    authoritativeFor: domainsOf(entry),
    domainClaim: entry.domainClaim ?? null,
    link: entry.link ?? 'ask',
    prompt: entry.prompt ?? null,
    responseMode: entry.responseMode ?? 'query',
    multiFactor: { amr: isMultiFactor.amr ?? [], acr: isMultiFactor.acr ?? [] },
    tenant: entry.tenant ?? null,
    endpoints: endpointsOf(id, { ...entry, type }),
    claims: entry.claims ?? {},
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
