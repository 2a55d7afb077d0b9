/** Presets of providers: what their documentation says, so that an operator only gives the client. */

import { type Static, type TSchema, Type } from '@sinclair/typebox'

const Text = Type.RegExp(/\S/)
const Texts = Type.Array(Text)
const Domains = Type.Array(Type.RegExp(/^[a-z\d-]+(?:\.[a-z\d-]+)+$/i))
const STRICT = { additionalProperties: false }

const Endpoints = Type.Object({
  authorization: Text,
  token: Text,
  userInfo: Text,
  /** Lists e-mails as GitHub does: `[{ email, primary, verified }]`. */
  emails: Type.Optional(Text),
})

/** The endpoints of a provider without discovery. */
export type Endpoints = Static<typeof Endpoints>

/** The properties of the user info by what they mean, for providers without ID tokens. */
const ClaimNames = Type.Partial(
  Type.Object({ subject: Text, email: Text, emailVerified: Text, name: Text }),
  STRICT,
)

export type ClaimNames = Static<typeof ClaimNames>

const PRESET_NAMES = ['google', 'microsoft', 'apple', 'github']

/** The properties of an entry of OIDC_PROVIDERS: the schema of each, and how a message says what it must be. */
export const PROPERTIES = {
  id: [Type.RegExp(/^[a-z0-9][a-z0-9-]{0,31}$/), 'lower-case letters, digits and hyphens'],
  preset: [Type.RegExp(new RegExp(`^(?:${PRESET_NAMES.join('|')})$`)), `one of ${PRESET_NAMES.join(', ')}`],
  type: [Type.Union([Type.Literal('oidc'), Type.Literal('oauth2')]), 'oidc or oauth2'],
  name: [Type.RegExp(/^(?=.*\S)\P{C}{1,64}$/u), 'a text of at most 64 characters in one line'],
  issuer: [Text, 'a URL'],
  clientId: [Text, 'a text that is not blank'],
  clientSecret: [Text, 'a text that is not blank'],
  clientSecretFile: [Text, 'a path'],
  privateKey: [Text, 'a private key in PEM'],
  privateKeyFile: [Text, 'a path'],
  tokenEndpointAuthMethod: [
    Type.Union([Type.Literal('client_secret_basic'), Type.Literal('client_secret_post')]),
    'client_secret_basic or client_secret_post',
  ],
  keyId: [Text, 'a text that is not blank'],
  teamId: [Text, 'a text that is not blank'],
  tenant: [Type.RegExp(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/), 'the id of a tenant'],
  scopes: [Texts, 'a list of texts'],
  signUp: [Type.Boolean(), 'true or false'],
  authoritativeFor: [
    Type.Union([Type.Literal('*'), Domains]),
    '"*" or a list of domains such as example.com',
  ],
  domainClaim: [Text, 'the name of a claim'],
  link: [Type.Union([Type.Literal('ask'), Type.Literal('verified-email')]), 'ask or verified-email'],
  prompt: [Text, 'a text that is not blank'],
  responseMode: [Type.Union([Type.Literal('query'), Type.Literal('form_post')]), 'query or form_post'],
  nonce: [Type.Boolean(), 'true or false'],
  isMultiFactor: [
    Type.Partial(Type.Object({ amr: Texts, acr: Texts }), STRICT),
    '{amr?, acr?} with lists of texts',
  ],
  endpoints: [Type.Partial(Endpoints, STRICT), '{authorization, token, userInfo, emails?} with URLs'],
  claims: [ClaimNames, '{subject?, email?, emailVerified?, name?} with names of properties'],
} as const satisfies Readonly<Record<string, readonly [schema: TSchema, must: string]>>

/** An entry of the list, as an operator writes it. */
export type ProviderEntry = {
  readonly [Name in keyof typeof PROPERTIES]?: Static<(typeof PROPERTIES)[Name][0]>
}

/**
 * Quirks:
 *
 * - `google` vouches for addresses of Gmail, and of the organization that the claim `hd` names
 *   (https://developers.google.com/identity/gsi/web/guides/verify-google-id-token).
 * - `microsoft` needs the id of one tenant. Its tokens do not vouch for addresses: an administrator of any tenant can enter any.
 * - `apple` sends its response as a form where names or e-mails are requested, and has a client secret that is a signed token
 *   (https://developer.apple.com/documentation/accountorganizationaldatasharing/creating-a-client-secret). Names come with the first form
 *   alone, and unsigned: they are not taken. Its documentation allows "true" for `email_verified`, which confirms nothing.
 * - `github` has no ID tokens, and takes the client secret in the body. Its identity is the number of the account, because a name can be
 *   used again by somebody else.
 */
export const PRESETS: Readonly<Record<string, ProviderEntry>> = {
  google: {
    name: 'Google',
    issuer: 'https://accounts.google.com',
    authoritativeFor: ['gmail.com', 'googlemail.com'],
    domainClaim: 'hd',
  },
  microsoft: { name: 'Microsoft' },
  apple: {
    name: 'Apple',
    issuer: 'https://appleid.apple.com',
    scopes: ['openid', 'email', 'name'],
    responseMode: 'form_post',
    authoritativeFor: ['privaterelay.appleid.com', 'icloud.com', 'me.com', 'mac.com'],
  },
  github: {
    name: 'GitHub',
    type: 'oauth2',
    // The `iss` of its responses (RFC 9207), since 2026.
    issuer: 'https://github.com/login/oauth',
    scopes: ['read:user', 'user:email'],
    endpoints: {
      authorization: 'https://github.com/login/oauth/authorize',
      token: 'https://github.com/login/oauth/access_token',
      userInfo: 'https://api.github.com/user',
      emails: 'https://api.github.com/user/emails',
    },
    claims: { subject: 'id', name: 'name' },
  },
}

/** The issuer of a tenant of Microsoft. */
export const microsoftIssuer = (tenant: string): string => `https://login.microsoftonline.com/${tenant}/v2.0`
