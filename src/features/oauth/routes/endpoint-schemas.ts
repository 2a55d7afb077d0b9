/** TypeBox schemas of the forms that clients send. Parameters that are not known are ignored (RFC 6749 §3.2). */
import { type TProperties, Type } from '@sinclair/typebox'

const Parameter = (maxLength: number, description: string, options = {}) =>
  Type.Optional(Type.String({ maxLength, description, ...options }))

const clientProperties = {
  client_id: Parameter(256, 'The id of the client, unless it authenticates otherwise'),
  client_secret: Parameter(256, 'For `client_secret_post`'),
  client_assertion: Parameter(8_192, 'For `private_key_jwt`'),
  client_assertion_type: Parameter(256, 'For `private_key_jwt`'),
}

const Form = <Properties extends TProperties>(properties: Properties, title: string) =>
  Type.Object({ ...properties, ...clientProperties }, { additionalProperties: true, title })

export const TokenForm = Form(
  {
    grant_type: Type.String({ maxLength: 128, examples: ['client_credentials'] }),
    code: Parameter(256, 'For `authorization_code`'),
    redirect_uri: Parameter(2_048, 'For `authorization_code`: as in the authorization request'),
    code_verifier: Parameter(256, 'For `authorization_code` (RFC 7636)'),
    refresh_token: Parameter(256, 'For `refresh_token`'),
    organization: Parameter(64, 'The id of an organization of the user that the token is to be limited to'),
    scope: Parameter(4_096, 'Separated by spaces; by default all that the client may have'),
    resource: Type.Optional(
      Type.Unsafe<readonly string[]>(
        Type.Array(Type.String({ maxLength: 2_048 }), {
          maxItems: 20,
          description: 'The identifier of a resource (RFC 8707); by default the token is for this service',
        }),
      ),
    ),
  },
  'TokenRequest',
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
    token_type: Type.Literal('Bearer'),
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
