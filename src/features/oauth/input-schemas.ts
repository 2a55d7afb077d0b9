/** TypeBox schemas of input that routes and commands share. */
import { type SchemaOptions, Type } from '@sinclair/typebox'
import { InputId, KeyName, Strict } from '#http/validation/schemas'
import {
  AUTH_METHODS,
  type AuthMethod,
  GRANT_TYPES,
  type GrantType,
  ID_TOKEN_ALGORITHMS,
  type IdTokenAlgorithm,
  type Jwk,
} from './client.ts'
import { MAX_URI, redirectUriProblem } from './redirect-uris.ts'
import { MAX_IDENTIFIER } from './resources.ts'
import { isScope, MAX_SCOPE, MAX_SCOPES } from './scopes.ts'

/** Scopes that give rights which outlive a token of a client, or another user's: only keys of the store have them. */
const ONLY_OF_KEYS = ['keys:write', 'users:impersonate']

export { KeyName as ClientName }

const list = <Item>(item: SchemaOptions, maxItems: number, options: SchemaOptions) =>
  Type.Unsafe<readonly Item[]>({ type: 'array', items: item, maxItems, uniqueItems: true, ...options })

const RedirectUri = {
  type: 'string',
  maxLength: MAX_URI,
  violations: (uri: string) => [redirectUriProblem(uri) ?? []].flat(),
}

export const RedirectUris = list<string>(RedirectUri, 20, {
  description: 'Where users return: compared as text, except for the port of a loopback address',
  examples: [['https://app.example.com/callback']],
})

const GrantTypes = list<GrantType>({ type: 'string', enum: [...GRANT_TYPES] }, GRANT_TYPES.length, {
  minItems: 1,
  description: 'How the client gets tokens',
  examples: [['authorization_code', 'refresh_token']],
})

const Method = Type.Unsafe<AuthMethod>({
  type: 'string',
  enum: [...AUTH_METHODS],
  description: 'How the client authenticates; `none`: it keeps no secret',
  examples: ['client_secret_basic'],
})

const text = { type: 'string', maxLength: 2_048 }

export type ClientJwks = { readonly keys: readonly Jwk[] } | null

/** Public keys, of which each type has the members of RFC 7518 §6. Private members are refused: they were sent by mistake. */
export const Jwks = Type.Unsafe<ClientJwks>({
  type: ['object', 'null'],
  properties: {
    keys: {
      type: 'array',
      minItems: 1,
      maxItems: 10,
      items: {
        type: 'object',
        properties: {
          ...{ kty: { type: 'string', enum: ['RSA', 'EC', 'OKP'] }, kid: text, alg: text, use: text },
          ...{ crv: text, x: text, y: text, n: text, e: text },
        },
        required: ['kty'],
        additionalProperties: false,
      },
    },
  },
  required: ['keys'],
  additionalProperties: false,
  description: 'The public keys (RFC 7517) with which the client signs assertions, for `private_key_jwt`',
  examples: [null],
})

export const JwksUri = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  maxLength: MAX_URI,
  violations: (uri: string) =>
    /^https?:\/\/[^#]+$/i.test(uri) && URL.canParse(uri) ? [] : ['must be a URL that begins with https://'],
  description: 'Where these keys are instead, over HTTPS',
  examples: [null],
})

const ScopeName = {
  type: 'string',
  maxLength: MAX_SCOPE,
  violations: (scope: string) =>
    isScope(scope) ? [] : ['must be visible ASCII characters without quotes and backslashes'],
}

const ClientScopes = list<string>(ScopeName, MAX_SCOPES, {
  description: 'What the client may ask users for: of OpenID Connect, of API keys, and of resources',
  examples: [['openid', 'profile', 'email']],
})

/** @param declared the scopes of admin keys. */
const AdminScopes = (declared: readonly string[]) =>
  list<string>(
    { type: 'string', enum: declared.filter(scope => !ONLY_OF_KEYS.includes(scope)) },
    declared.length,
    {
      description: 'Scopes of admin keys that tokens of the client’s own may have, among those of your key',
      examples: [['users:read']],
    },
  )

/** A page about the client, or a document. */
export const Link = (description: string) =>
  Type.Unsafe<string | null>({
    type: ['string', 'null'],
    maxLength: MAX_URI,
    violations: (uri: string) =>
      /^https:\/\//i.test(uri) && URL.canParse(uri) ? [] : ['must be a URL that begins with https://'],
    description,
    examples: [null],
  })

const optional = (declared: readonly string[]) => ({
  redirectUris: Type.Optional(RedirectUris),
  grantTypes: Type.Optional(GrantTypes),
  authMethod: Type.Optional(Method),
  jwks: Type.Optional(Jwks),
  jwksUri: Type.Optional(JwksUri),
  scopes: Type.Optional(ClientScopes),
  adminScopes: Type.Optional(AdminScopes(declared)),
  firstParty: Type.Optional(
    Type.Boolean({
      description: 'Whether users are not asked for their consent; needs the scope `clients:trust`',
      examples: [false],
    }),
  ),
  requirePkce: Type.Optional(
    Type.Boolean({
      description: 'Whether the code flow needs PKCE; needs the scope `clients:trust`',
      examples: [true],
    }),
  ),
  postLogoutRedirectUris: Type.Optional(
    list<string>(RedirectUri, 20, {
      description: 'Where users return after a logout that the client began: compared as text',
      examples: [['https://app.example.com/signed-out']],
    }),
  ),
  backchannelLogoutUri: Type.Optional(
    Type.Unsafe<string | null>({
      type: ['string', 'null'],
      maxLength: MAX_URI,
      violations: (uri: string) =>
        /^https?:\/\/[^#]+$/i.test(uri) && URL.canParse(uri)
          ? []
          : ['must be a URL such as https://app.example.com/logout, without a fragment'],
      description: 'Is sent a logout token when a session ends that the client has an ID token of',
      examples: [null],
    }),
  ),
  requirePushedRequests: Type.Optional(
    Type.Boolean({
      description: 'Whether the client must push its authorization requests (RFC 9126)',
      examples: [false],
    }),
  ),
  idTokenAlgorithm: Type.Optional(
    Type.Unsafe<IdTokenAlgorithm>({
      type: 'string',
      enum: [...ID_TOKEN_ALGORITHMS],
      description: 'What signs ID tokens for the client: RS256, or the algorithm of a key of access tokens',
      examples: ['RS256'],
    }),
  ),
  uri: Type.Optional(Link('A page about the client')),
  policyUri: Type.Optional(Link('Its privacy policy')),
  termsUri: Type.Optional(Link('Its terms of service')),
})

/** @param declared the scopes of admin keys. */
export const NewClient = (declared: readonly string[]) => Strict({ name: KeyName, ...optional(declared) })

/** @param declared the scopes of admin keys. */
export const ChangedClient = (declared: readonly string[]) =>
  Strict(
    {
      name: Type.Optional(KeyName),
      ...optional(declared),
      blocked: Type.Optional(
        Type.Boolean({
          description: 'Whether the client gets nothing, and its tokens are refused',
          examples: [false],
        }),
      ),
    },
    { minProperties: 1 },
  )

const Identifier = Type.String({
  minLength: 1,
  maxLength: MAX_IDENTIFIER,
  description: 'An absolute URI: `resource` of requests, and `aud` of tokens',
  examples: ['https://api.example.com'],
})

const ResourceScopes = Type.Unsafe<Readonly<Record<string, string>>>({
  type: 'object',
  maxProperties: MAX_SCOPES,
  propertyNames: ScopeName,
  additionalProperties: { type: 'string', minLength: 1, maxLength: 200 },
  description: 'What each scope of the resource allows, in words for users',
  examples: [{ 'reports:read': 'Read your reports' }],
})

const ClientIds = Type.Unsafe<readonly string[]>({
  ...Type.Array(InputId, { maxItems: 20, uniqueItems: true }),
  description: 'The clients that may introspect tokens for the resource',
  examples: [[]],
})

export const NewResource = Strict({
  identifier: Identifier,
  name: KeyName,
  scopes: Type.Optional(ResourceScopes),
  clientIds: Type.Optional(ClientIds),
})

export const ChangedResource = Strict(
  {
    identifier: Type.Optional(Identifier),
    name: Type.Optional(KeyName),
    scopes: Type.Optional(ResourceScopes),
    clientIds: Type.Optional(ClientIds),
  },
  { minProperties: 1 },
)
