/** The request header that carries the admin key, and the challenges that name it (RFC 9110 §11.6.1). */
import { ServiceError } from '#base/errors'

/** §5.2.1. */
export const ADMIN_KEY_HEADER = 'x-admin-key'

export const ADMIN_CHALLENGE = { 'www-authenticate': ADMIN_KEY_HEADER }

/** @param scopes that the key would need. */
export const insufficientScopes = (scopes: readonly string[]): { readonly 'www-authenticate': string } => ({
  'www-authenticate': `${ADMIN_KEY_HEADER} error="insufficient_scope", scope="${scopes.join(' ')}"`,
})

/** The error for a key without this scope. */
export const adminScopeRequired = (scope: string): ServiceError =>
  new ServiceError('scopeRequired', { headers: insufficientScopes([scope]) })
