/** Metadata of clients as they write it themselves (RFC 7591 §2), mapped to ours. Members that are not known are ignored. */
import { Type } from '@sinclair/typebox'
import { ServiceError } from '#feature/declaration'
import {
  AUTH_METHODS,
  type AuthMethod,
  type Client,
  type ClientMetadata,
  GRANT_TYPES,
  type GrantType,
  ID_TOKEN_ALGORITHMS,
  type IdTokenAlgorithm,
  newClientMetadata,
} from './client.ts'
import { ERRORS } from './definitions.ts'
import { type ClientJwks, ClientName, Jwks, JwksUri, Link, RedirectUris } from './input-schemas.ts'
import { MAX_SCOPES, OPENID_SCOPES, scopesOf } from './scopes.ts'

/** What clients that nobody has checked can be for: users, who are asked. */
const FOR_USERS: readonly GrantType[] = ['authorization_code', 'refresh_token']

/** What only administrators choose, by the names of our API and by those that a client could invent from them. */
const PRIVILEGES = [
  ...['firstParty', 'adminScopes', 'requirePkce', 'blocked'],
  ...['first_party', 'admin_scopes', 'require_pkce'],
]

const Words = (description: string, examples: readonly string[]) =>
  Type.Unsafe<readonly string[]>({
    type: 'array',
    items: { type: 'string', maxLength: 128 },
    minItems: 1,
    maxItems: 20,
    description,
    examples: [examples],
  })

export const ClientDocument = Type.Object(
  {
    redirect_uris: Type.Unsafe<readonly string[]>({ ...RedirectUris, minItems: 1 }),
    client_name: Type.Optional(ClientName),
    token_endpoint_auth_method: Type.Optional(
      Type.Unsafe<AuthMethod>({
        type: 'string',
        enum: [...AUTH_METHODS],
        description: 'How the client authenticates; `none`: it keeps no secret',
        examples: ['none'],
      }),
    ),
    grant_types: Type.Optional(
      Words('`authorization_code` and `refresh_token`; other ones are dropped', ['authorization_code']),
    ),
    response_types: Type.Optional(Words('`code`; other ones are dropped', ['code'])),
    scope: Type.Optional(
      Type.String({
        maxLength: 4_096,
        description: 'What it may ask users for, separated by spaces',
        examples: ['openid profile'],
      }),
    ),
    jwks: Type.Optional(Jwks),
    jwks_uri: Type.Optional(JwksUri),
    id_token_signed_response_alg: Type.Optional(
      Type.Unsafe<IdTokenAlgorithm>({ type: 'string', enum: [...ID_TOKEN_ALGORITHMS], examples: ['RS256'] }),
    ),
    client_uri: Type.Optional(Link('A page about the client')),
    policy_uri: Type.Optional(Link('Its privacy policy')),
    tos_uri: Type.Optional(Link('Its terms of service')),
  },
  { additionalProperties: true, title: 'ClientDocument' },
)

export interface ClientDocument {
  readonly redirect_uris: readonly string[]
  readonly client_name?: string | undefined
  readonly token_endpoint_auth_method?: AuthMethod | undefined
  readonly grant_types?: readonly string[] | undefined
  readonly response_types?: readonly string[] | undefined
  readonly scope?: string | undefined
  readonly jwks?: ClientJwks | undefined
  readonly jwks_uri?: string | null | undefined
  readonly id_token_signed_response_alg?: IdTokenAlgorithm | undefined
  readonly client_uri?: string | null | undefined
  readonly policy_uri?: string | null | undefined
  readonly tos_uri?: string | null | undefined
}

/** @throws {ServiceError} of a member. */
const refuse = (field: string, message: string): never => {
  throw new ServiceError({ ...ERRORS.clientMetadataInvalid, field, message })
}

/** Members of documents by the names of ours. */
const MEMBERS: Readonly<Record<string, string>> = {
  redirectUris: 'redirect_uris',
  grantTypes: 'grant_types',
  authMethod: 'token_endpoint_auth_method',
  idTokenAlgorithm: 'id_token_signed_response_alg',
  jwksUri: 'jwks_uri',
}

/** An error of a client's metadata under the name that the field has in documents. */
export const asDocumentError = (error: unknown): unknown => {
  if (!(error instanceof ServiceError) || error.status !== 400) return error
  const field = MEMBERS[error.field] ?? error.field
  return new ServiceError({ ...ERRORS.clientMetadataInvalid, field, message: error.message })
}

const grantTypesOf = ({ grant_types: types = ['authorization_code'] }: ClientDocument): GrantType[] => {
  if (types.includes('client_credentials'))
    refuse('grant_types', 'must not have client_credentials: an administrator registers such clients')
  if (!types.includes('authorization_code')) refuse('grant_types', 'must have authorization_code')
  return GRANT_TYPES.filter(type => FOR_USERS.includes(type) && types.includes(type))
}

/** A client without a name is called after where users return to. */
const nameOf = ({ client_name: name, redirect_uris: [uri = ''] }: ClientDocument): string => {
  const { host, protocol } = new URL(uri)
  return name ?? (host === '' ? protocol.slice(0, -1) : host)
}

/**
 * @param resourceScopes of all resources: a client that names no scopes may ask for these, and for those of OpenID Connect.
 * @param defaultMethod of a client that names none.
 * @throws {ServiceError} `clientMetadataInvalid` with the member, also for what only administrators choose.
 */
export const metadataOfDocument = (
  document: ClientDocument,
  resourceScopes: readonly string[],
  defaultMethod: AuthMethod,
): ClientMetadata => {
  const privilege = PRIVILEGES.find(name => Object.hasOwn(document, name))
  if (privilege !== undefined) refuse(privilege, 'can be set by administrators only')
  if (document.response_types?.includes('code') === false) refuse('response_types', 'must have code')
  const known = [...Object.keys(OPENID_SCOPES), ...resourceScopes]
  return newClientMetadata({
    name: nameOf(document),
    redirectUris: document.redirect_uris,
    grantTypes: grantTypesOf(document),
    authMethod: document.token_endpoint_auth_method ?? defaultMethod,
    jwks: document.jwks ?? null,
    jwksUri: document.jwks_uri ?? null,
    scopes: [...new Set(document.scope === undefined ? known : scopesOf(document.scope))].slice(
      0,
      MAX_SCOPES,
    ),
    idTokenAlgorithm: document.id_token_signed_response_alg ?? 'RS256',
    uri: document.client_uri ?? null,
    policyUri: document.policy_uri ?? null,
    termsUri: document.tos_uri ?? null,
  })
}

/** The metadata that a client is registered with (RFC 7591 §3.2.1). */
export const documentOf = (client: Client) => ({
  client_name: client.name,
  redirect_uris: client.redirectUris,
  grant_types: client.grantTypes,
  response_types: ['code'],
  token_endpoint_auth_method: client.authMethod,
  scope: client.scopes.join(' '),
  id_token_signed_response_alg: client.idTokenAlgorithm,
  ...(client.jwks !== null && { jwks: client.jwks }),
  ...(client.jwksUri !== null && { jwks_uri: client.jwksUri }),
  ...(client.uri !== null && { client_uri: client.uri }),
  ...(client.policyUri !== null && { policy_uri: client.policyUri }),
  ...(client.termsUri !== null && { tos_uri: client.termsUri }),
})
