/** What is said of sessions, and of users who are moved: the same to clients and on the command line. */

import type { Principal } from '../auth/principal.ts'
import type { Session } from '../auth/session.ts'
import { errorBody } from '../errors.ts'
import { serializeAdminUser } from '../users/serializers.ts'
import type { ImportResult, PortableUser } from './bulk-users.ts'

/** @param current what the one who asks is identified by; `null` where it is no session of theirs. */
export const serializeSession = (session: Session, current: Principal | null) => {
  const isCurrent = session.id === current?.sessionId
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

/** With the hash it can be imported elsewhere, and its password goes on working. */
export const serializeExportedUser = (user: PortableUser, passwordHash: boolean) =>
  passwordHash ? { ...serializeAdminUser(user), passwordHash: user.passwordHash } : serializeAdminUser(user)

export const serializeImportResult = (result: ImportResult) => {
  if (result.status !== 'stopped') return result
  const { error, ...counts } = result
  return { ...counts, ...errorBody(error.field, error.message) }
}
