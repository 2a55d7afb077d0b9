/** What is said of sessions, and of users who are moved: the same to clients and on the command line. */

import type { Identity } from '../auth/identity.ts'
import type { Session } from '../auth/session.ts'
import { errorBody } from '../errors.ts'
import { presentAdminUser } from '../users/views.ts'
import type { ImportResult } from './imports.ts'
import type { PortableUser } from './transfer-store.ts'

/** @param current what the one who asks is identified by; `null` where it is no session of theirs. */
export const presentSession = (session: Session, current: Identity | null) => {
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
export const presentExportedUser = (user: PortableUser, passwordHash: boolean) =>
  passwordHash ? { ...presentAdminUser(user), passwordHash: user.passwordHash } : presentAdminUser(user)

export const presentImportResult = (result: ImportResult) => {
  if (result.status !== 'stopped') return result
  const { error, ...counts } = result
  return { ...counts, ...errorBody(error.field, error.message) }
}
