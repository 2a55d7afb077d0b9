/** Organizations of tokens: what a user grants can be limited to one of their organizations, and a token further. */
import { ServiceError } from '#feature/declaration'
import { ERRORS, type OAuthDeps } from './definitions.ts'

/**
 * The organization of a token. Each use of the token compares the membership again.
 * @param granted that of the grant. @param asked that of the request for the token.
 * @throws {ServiceError} `invalidOrganization`; `invalidGrant` if the user is no member of that of the grant any more.
 */
export const organizationOfToken = async (
  { memberships }: Pick<OAuthDeps, 'memberships'>,
  userId: string,
  granted: string | null,
  asked: string | undefined,
): Promise<string | null> => {
  const id = asked?.toLowerCase() ?? granted
  if (id === null) return null
  const isNarrower = granted === null || granted === id
  if (isNarrower && (await memberships()?.find(userId, id)) !== undefined) return id
  throw new ServiceError(asked === undefined ? ERRORS.invalidGrant : ERRORS.invalidOrganization)
}
