/** TypeBox schemas of the forms that clients send. Parameters that are not known are ignored (RFC 6749 §3.2). */
import { type TProperties, Type } from '@sinclair/typebox'

export const Parameter = (maxLength: number, description: string, options = {}) =>
  Type.Optional(Type.String({ maxLength, description, ...options }))

const clientProperties = {
  client_id: Parameter(256, 'The id of the client, unless it authenticates otherwise'),
  client_secret: Parameter(256, 'For `client_secret_post`'),
  client_assertion: Parameter(8_192, 'For `private_key_jwt`'),
  client_assertion_type: Parameter(256, 'For `private_key_jwt`'),
}

const Form = <Properties extends TProperties>(properties: Properties, title: string) =>
  Type.Object({ ...properties, ...clientProperties }, { additionalProperties: true, title })

const ResourceNames = Type.Optional(
  Type.Unsafe<readonly string[]>(
    Type.Array(Type.String({ maxLength: 2_048 }), {
      maxItems: 20,
      description: 'The identifier of a resource (RFC 8707); by default the token is for this service',
    }),
  ),
)

const ScopeNames = Parameter(4_096, 'Separated by spaces; by default all that the client may have')

export const TokenForm = Form(
  {
    grant_type: Type.String({ maxLength: 128, examples: ['client_credentials'] }),
    code: Parameter(256, 'For `authorization_code`'),
    redirect_uri: Parameter(2_048, 'For `authorization_code`: as in the authorization request'),
    code_verifier: Parameter(256, 'For `authorization_code` (RFC 7636)'),
    refresh_token: Parameter(256, 'For `refresh_token`'),
    organization: Parameter(64, 'The id of an organization of the user that the token is to be limited to'),
    scope: ScopeNames,
    device_code: Parameter(256, 'For the type of device codes (RFC 8628)'),
    resource: ResourceNames,
  },
  'TokenRequest',
)

/** Parameters of an authorization request, each of which may be given once (RFC 6749 §3.1), without `resource`. */
export const authorizationProperties = {
  client_id: Parameter(256, 'The id of the client'),
  redirect_uri: Parameter(2_048, 'One that is registered'),
  response_type: Parameter(64, '`code`'),
  scope: ScopeNames,
  state: Parameter(2_048, 'Comes back to the client'),
  prompt: Parameter(64, '`none`, `login`, `consent`, `select_account`'),
  max_age: Parameter(16, 'Seconds since the sign-in'),
  nonce: Parameter(512, 'Of the ID token'),
  acr_values: Parameter(512, 'How the user must have signed in'),
  login_hint: Parameter(254, 'The e-mail of the user'),
  code_challenge: Parameter(128, 'Of RFC 7636'),
  code_challenge_method: Parameter(16, '`S256`'),
  ui_locales: Parameter(256, 'Languages of the pages, the preferred one first'),
  organization: Parameter(64, 'The id of an organization of the user that the access is to be limited to'),
  dpop_jkt: Parameter(64, 'The thumbprint of the key that the code is bound to (RFC 9449)'),
  request: Parameter(16_384, 'Not supported'),
}

export const PushedForm = Form(
  { ...authorizationProperties, request_uri: Parameter(2_048, 'Not supported'), resource: ResourceNames },
  'PushedRequest',
)

/** RFC 9126 §2.2. */
export const PushedResponse = Type.Object(
  {
    request_uri: Type.String({
      examples: ['urn:ietf:params:oauth:request_uri:GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS1I'],
    }),
    expires_in: Type.Integer({ description: 'Seconds', examples: [60] }),
  },
  { title: 'PushedAuthorizationRequest' },
)

export const DeviceForm = Form({ scope: ScopeNames, resource: ResourceNames }, 'DeviceRequest')

/** RFC 8628 §3.2. */
export const DeviceResponse = Type.Object(
  {
    device_code: Type.String({ examples: ['GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS1I'] }),
    user_code: Type.String({ description: 'What the device shows', examples: ['WDJB-MJHT'] }),
    verification_uri: Type.String({ examples: ['https://id.example.com/device'] }),
    verification_uri_complete: Type.String({
      description: 'With the code, for a QR code',
      examples: ['https://id.example.com/device?user_code=WDJB-MJHT'],
    }),
    expires_in: Type.Integer({ description: 'Seconds', examples: [600] }),
    interval: Type.Integer({ description: 'Seconds between two polls', examples: [5] }),
  },
  { title: 'DeviceCode' },
)

/** For introspection and revocation. */
export const PresentedTokenForm = Form(
  {
    token: Type.String({ minLength: 1, maxLength: 16_384, text: 'any' }),
    token_type_hint: Parameter(256, 'Ignored'),
  },
  'PresentedToken',
)

export const TokenResponse = Type.Object(
  {
    access_token: Type.String({ examples: ['eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiIwMTkz'] }),
    token_type: Type.Unsafe<'Bearer' | 'DPoP'>({
      type: 'string',
      enum: ['Bearer', 'DPoP'],
      description: '`DPoP`: bound to the key of the request (RFC 9449)',
      examples: ['Bearer'],
    }),
    expires_in: Type.Integer({ description: 'Seconds', examples: [3_600] }),
    scope: Type.String({ examples: ['users:read'] }),
    refresh_token: Type.Optional(
      Type.String({ description: 'If the client is registered for one', examples: ['gate_ort_AZNrfko'] }),
    ),
    id_token: Type.Optional(
      Type.String({
        description: 'For a code with the scope `openid`',
        examples: ['eyJhbGciOiJSUzI1NiJ9.e30'],
      }),
    ),
  },
  { title: 'ClientToken' },
)

/** RFC 7662 §2.2. */
export const IntrospectedToken = Type.Object(
  { active: Type.Boolean() },
  {
    title: 'IntrospectedClientToken',
    additionalProperties: true,
    description: 'With the claims of an active token',
    examples: [{ active: true, client_id: '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70', scope: 'users:read' }],
  },
)
