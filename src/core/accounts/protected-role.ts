/**
 * A role whose holders administer the service (docs/console.md, "Named administrators"). A key that could give it to a user, or take over one who
 * has it, would get its scopes: both need all of them already, so that no key raises itself.
 */
import { ServiceError } from '#base/errors'
import { missingScopes, type PresentedAdminKey } from '../auth/admin-key.ts'

export interface ProtectedRole {
  readonly role: string
  /** What its holders may do. */
  readonly scopes: readonly string[]
}

/** The scopes with which something is done. */
export type ActingKey = Pick<PresentedAdminKey, 'scopes'>

/** The operator on the command line may do everything, as a root key may. */
export const EVERY_SCOPE: ActingKey = { scopes: null }

interface Holder {
  readonly roles?: readonly string[] | undefined
}

const isHolder = (protectedRole: ProtectedRole, { roles = [] }: Holder): boolean =>
  roles.includes(protectedRole.role)

/**
 * Before something that gives control over a user, or with the roles that a user is to get.
 * @param protectedRole `null`: there is none.
 * @throws {ServiceError} `scopeRequired` if the user has the role, and the key lacks scopes of it
 */
export const requireScopesOf = (
  protectedRole: ProtectedRole | null,
  holder: Holder,
  key: ActingKey,
): void => {
  if (protectedRole === null || !isHolder(protectedRole, holder)) return
  const missing = missingScopes(key, protectedRole.scopes)
  if (missing.length > 0) throw new ServiceError('scopeRequired', { missingAdminScopes: missing })
}
