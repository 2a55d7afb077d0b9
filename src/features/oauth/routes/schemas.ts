/** TypeBox schemas of the authorization server's responses. */
import { Type } from '@sinclair/typebox'
import { Id, NextCursor, NullableTimestamp, Texts, Timestamp, withExample } from '#routes/schemas'

export { ChangedClient, ChangedResource, NewClient, NewResource } from '../input-schemas.ts'

const NullableUri = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], description, examples: [null] })

const clientProperties = {
  id: Id,
  origin: Type.String({
    description:
      '`administrator`, `registered` for a client that has registered itself, or `document` for one with a metadata document',
    examples: ['administrator'],
  }),
  documentUrl: NullableUri('Where its metadata are, which is its `client_id`; `null`: that is its id'),
  name: Type.String({ examples: ['Fleet Planner'] }),
  redirectUris: Texts('https://app.example.com/callback'),
  grantTypes: Texts('authorization_code'),
  authMethod: Type.String({ examples: ['client_secret_basic'] }),
  jwks: Type.Unsafe<object | null>({
    type: ['object', 'null'],
    additionalProperties: true,
    description: 'Its public keys, for `private_key_jwt`',
    examples: [null],
  }),
  jwksUri: NullableUri('Where these keys are instead'),
  scopes: Texts('openid'),
  adminScopes: Texts('users:read'),
  firstParty: Type.Boolean({ examples: [false] }),
  requirePkce: Type.Boolean({ examples: [true] }),
  postLogoutRedirectUris: Texts('https://app.example.com/signed-out'),
  backchannelLogoutUri: NullableUri('Learns of the end of sessions'),
  requirePushedRequests: Type.Boolean({ examples: [false] }),
  idTokenAlgorithm: Type.String({ examples: ['RS256'] }),
  uri: NullableUri('A page about the client'),
  policyUri: NullableUri('Its privacy policy'),
  termsUri: NullableUri('Its terms of service'),
  blocked: Type.Boolean({ examples: [false] }),
  formerSecretExpiresAt: withExample(NullableTimestamp, null),
  createdAt: Timestamp,
  updatedAt: Timestamp,
}

export const Client = Type.Object(clientProperties, { title: 'OAuthClient' })

export const ClientPage = Type.Object(
  { results: Type.Array(Client), nextCursor: NextCursor },
  { title: 'OAuthClientPage' },
)

/** The checksum of the example is wrong, so that scanners for secrets ignore it. */
const SECRET_EXAMPLE = 'gate_cls_mN2xQ7tVb9KdRw3yLs5hJf8gTz1aXe4uNi6oBv0pCk4000000'

export const CreatedClient = Type.Object(
  {
    ...clientProperties,
    secret: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      description: 'Shown only here; `null` for a client without a secret',
      examples: [SECRET_EXAMPLE],
    }),
  },
  { title: 'CreatedOAuthClient' },
)

export const RotatedClientSecret = Type.Object(
  {
    secret: Type.String({ description: 'Shown only here', examples: [SECRET_EXAMPLE] }),
    formerSecretExpiresAt: Timestamp,
  },
  { title: 'RotatedClientSecret' },
)

export const Resource = Type.Object(
  {
    id: Id,
    identifier: Type.String({ examples: ['https://api.example.com'] }),
    name: Type.String({ examples: ['Reports'] }),
    scopes: Type.Unsafe<Readonly<Record<string, string>>>({
      type: 'object',
      additionalProperties: { type: 'string' },
      description: 'What each scope allows',
      examples: [{ 'reports:read': 'Read your reports' }],
    }),
    clientIds: Type.Unsafe<readonly string[]>(
      Type.Array(Id, { description: 'The clients that may introspect tokens for the resource' }),
    ),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: 'Resource' },
)

export const ResourceList = Type.Object({ results: Type.Array(Resource) }, { title: 'ResourceList' })

const Grant = Type.Object(
  {
    id: Id,
    client: Type.Object({
      id: Id,
      name: Type.String({ examples: ['Fleet Planner'] }),
      uri: NullableUri('A page about the client'),
    }),
    scopes: Texts('openid'),
    resource: NullableUri('The resource that the access is for; `null`: your account'),
    organization: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      description: 'The id of the organization that the access is limited to; `null`: none',
      examples: [null],
    }),
    endsWithSession: Type.Boolean({
      description: 'Whether the access ends when you sign out',
      examples: [true],
    }),
    createdAt: Timestamp,
    lastUsedAt: Timestamp,
    expiresAt: Timestamp,
  },
  { title: 'Grant' },
)

export const GrantList = Type.Object({ results: Type.Array(Grant) }, { title: 'GrantList' })
