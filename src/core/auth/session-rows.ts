/** The rows of sessions, for both engines. Statements list columns in the order given here. */
import { networkDigest } from '../rate-limits/known-networks.ts'
import type { SessionsTable } from '../store/tables.ts'
import { NO_AMR, type Session } from './session.ts'

/** A session without its user, which is a key in the table and an id elsewhere. */
export type SessionRow = Omit<SessionsTable, 'user_key'>

export const SESSION_COLUMNS = [
  'id',
  'created_at',
  'expires_at',
  'last_request_at',
  'ip',
  'user_agent',
  'impersonated_by',
  'authenticated_at',
  'network',
  'method',
  'amr',
] as const satisfies readonly (keyof SessionRow)[]

/** Lists of `amr` by the text of the column. There are few, which sessions in memory share. */
const amrLists = new Map<string, readonly string[]>()

export const amrColumn = (amr: readonly string[]): string | null => (amr.length === 0 ? null : amr.join(' '))

export const toAmr = (column: string | null): readonly string[] => {
  if (column === null) return NO_AMR
  let amr = amrLists.get(column)
  if (amr === undefined) {
    amr = Object.freeze(column.split(' '))
    amrLists.set(column, amr)
  }
  return amr
}

export const sessionColumns = (session: Session): SessionRow => ({
  id: session.id,
  created_at: session.createdAt,
  expires_at: session.expiresAt,
  last_request_at: session.lastRequestAt,
  ip: session.ip,
  user_agent: session.userAgent,
  impersonated_by: session.impersonatedBy,
  authenticated_at: session.authenticatedAt === session.createdAt ? null : session.authenticatedAt,
  // An administrator who acts as the user is no sign-in of theirs.
  network: session.impersonatedBy === null ? networkDigest(session.userId, session.ip) : null,
  method: session.method,
  amr: amrColumn(session.amr),
})

export const toSession = (row: Omit<SessionRow, 'network'>, userId: string): Session => ({
  id: row.id,
  userId,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  lastRequestAt: row.last_request_at,
  ip: row.ip,
  userAgent: row.user_agent,
  impersonatedBy: row.impersonated_by,
  authenticatedAt: row.authenticated_at ?? row.created_at,
  method: row.method,
  amr: toAmr(row.amr),
})
