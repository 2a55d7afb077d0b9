/** What clients learn of users by the scopes of OpenID Connect (Core §5.4): never roles, metadata or factors. */
import type { User } from '#core/users/user'

type Claims = Readonly<Record<string, unknown>>

/** Claims without a value are left out (Core §5.3.2). */
const profileOf = ({ firstName, lastName, locale, updatedAt }: User): Claims => {
  const name = [firstName, lastName].filter(Boolean).join(' ')
  return {
    ...(name !== '' && { name }),
    ...(firstName !== null && { given_name: firstName }),
    ...(lastName !== null && { family_name: lastName }),
    ...(locale !== null && { locale }),
    updated_at: Math.floor(updatedAt / 1_000),
  }
}

const CLAIMS: Readonly<Record<string, (user: User) => Claims>> = {
  profile: profileOf,
  email: ({ email, emailVerified }) => ({ email, email_verified: emailVerified }),
}

/** The claims of a user, with `sub`. @param scopes of a token with `openid`. */
export const userClaims = (user: User, scopes: readonly string[]): Claims & { readonly sub: string } =>
  Object.assign({ sub: user.id }, ...scopes.map(scope => CLAIMS[scope]?.(user)))
