/** Sessions and imported or exported users as JSON, for HTTP and the command line. */

import { errorBody } from '#base/errors'
import type { Principal } from '../auth/principal.ts'
import type { Session } from '../auth/session.ts'
import { serializeAdminUser, toIsoOrNull } from '../users/serializers.ts'
import type { AccountMethod } from './account-methods.ts'
import type { ExportContents, ExportedUser, ImportResult } from './bulk-users.ts'

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
    method: session.method,
    amr: session.amr,
    impersonated: session.impersonatedBy !== null,
    current: isCurrent,
  }
}

export const serializeMethod = ({ addedAt, lastUsedAt, ...method }: AccountMethod) => ({
  ...method,
  addedAt: toIsoOrNull(addedAt),
  lastUsedAt: toIsoOrNull(lastUsedAt),
})

/** An exported user in JSON. With the hash and the credentials, the password and the factors still work after an import. */
export const serializeExportedUser = (user: ExportedUser, { withHash }: ExportContents) => {
  const { passwordHash, credentials, properties } = user
  if (!withHash) return { ...serializeAdminUser(user), ...properties }
  return {
    ...serializeAdminUser(user),
    ...properties,
    ...(passwordHash !== null && { passwordHash }),
    ...(credentials !== undefined && { credentials }),
  }
}

export const serializeImportResult = (result: ImportResult) => {
  if (result.status !== 'stopped') return result
  const { error, ...counts } = result
  return { ...counts, ...errorBody(error.field, error.message) }
}
