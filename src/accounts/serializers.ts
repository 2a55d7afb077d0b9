/** Sessions and imported or exported users as JSON, for HTTP and the command line. */
import type { Principal } from '../auth/principal.ts'
import type { Session } from '../auth/session.ts'
import { errorBody } from '../errors.ts'
import { serializeAdminUser } from '../users/serializers.ts'
import type { UserWithHash } from '../users/user.ts'
import type { ImportResult } from './bulk-users.ts'

/** @param current the principal of the request, if it is the sessions' user; else `null`. */
export const serializeSession = (session: Session, current: Principal | null) => {
  const isCurrent = session.id === current?.credentialId
  const lastRequestAt = isCurrent ? current.lastRequestAt : session.lastRequestAt
  return {
    id: session.id,
    createdAt: new Date(session.createdAt).toISOString(),
    lastRequestAt: new Date(lastRequestAt).toISOString(),
    expiresAt: new Date(session.expiresAt).toISOString(),
    ip: session.ip,
    userAgent: session.userAgent,
    impersonated: session.impersonatedBy !== null,
    current: isCurrent,
  }
}

/** With the hash, the password still works after an import. */
export const serializeExportedUser = (user: UserWithHash, { withHash }: { readonly withHash: boolean }) =>
  withHash ? { ...serializeAdminUser(user), passwordHash: user.passwordHash } : serializeAdminUser(user)

export const serializeImportResult = (result: ImportResult) => {
  if (result.status !== 'stopped') return result
  const { error, ...counts } = result
  return { ...counts, ...errorBody(error.field, error.message) }
}
