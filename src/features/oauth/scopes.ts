/** Scopes of requests (RFC 6749 §3.3): which of them a token gets. */
import type { ScopeDescriptions } from '#core/auth/scopes'
import type { Client } from './client.ts'
import type { Resource } from './resource.ts'

/** Scopes of OpenID Connect and of refresh tokens, which no API key has. */
export const OPENID_SCOPES = {
  openid: 'Know who you are',
  profile: 'See your name and your language',
  email: 'See your e-mail',
  offline_access: 'Keep this access while you are away',
} as const satisfies ScopeDescriptions

/** Characters of a scope, and of all scopes of a token together: the longest token must be verified. */
export const MAX_SCOPE = 64
export const MAX_TOKEN_SCOPES = 1_024

/** Scopes of a client, and of a resource. */
export const MAX_SCOPES = 50

export const isScope = (text: string): boolean => /^[!#-[\]-~]+$/.test(text)

/** @returns each scope of a request once; those that are not valid are unknown. */
export const scopesOf = (text: string): readonly string[] => [...new Set(text.split(' ').filter(isScope))]

/** The scopes that a token of the client's own may have: for Gatehouse those of admin keys. They are not those of users with the same names. */
export const ownScopesOf = ({ scopes, adminScopes }: Client, resource: Resource | null): readonly string[] =>
  resource === null ? adminScopes : scopes.filter(scope => Object.hasOwn(resource.scopes, scope))

/** The first of the scopes, as many as fit into a token. */
export const fitting = (scopes: readonly string[]): readonly string[] => {
  let length = 0
  return scopes.filter(scope => {
    length += scope.length + 1
    return length <= MAX_TOKEN_SCOPES
  })
}
