/** Presets of providers: what their documentation says, so that an operator only gives the client. */

/** The endpoints of a provider without discovery. */
export interface Endpoints {
  readonly authorization: string
  readonly token: string
  readonly userInfo: string
  /** Lists e-mails as GitHub does: `[{ email, primary, verified }]`. */
  readonly emails?: string
}

/** The properties of the user info by what they mean, for providers without ID tokens. */
export interface ClaimNames {
  readonly subject?: string
  readonly email?: string
  readonly emailVerified?: string
  readonly name?: string
}

/** An entry of the list, as an operator writes it. A preset has some of the properties. */
export interface ProviderEntry {
  readonly id: string
  readonly preset?: string
  readonly type?: 'oidc' | 'oauth2'
  readonly name: string
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret?: string
  readonly clientSecretFile?: string
  readonly privateKey?: string
  readonly privateKeyFile?: string
  readonly tokenEndpointAuthMethod?: 'client_secret_basic' | 'client_secret_post'
  readonly keyId?: string
  readonly teamId?: string
  readonly tenant?: string
  readonly scopes?: readonly string[]
  readonly signUp?: boolean
  readonly authoritativeFor?: '*' | readonly string[]
  readonly domainClaim?: string
  readonly link?: 'ask' | 'verified-email'
  readonly prompt?: string
  readonly responseMode?: 'query' | 'form_post'
  readonly nonce?: boolean
  readonly isMultiFactor?: { readonly amr?: readonly string[]; readonly acr?: readonly string[] }
  readonly endpoints?: Endpoints
  readonly claims?: ClaimNames
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
export const PRESETS: Readonly<Record<string, Partial<ProviderEntry>>> = {
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
