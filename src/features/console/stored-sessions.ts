/** Sessions of the console in the store. The writer thread of SQLite imports this module. */
import type { AuditEvent } from '#core/audit-log/event'
import { recordStatement } from '#core/audit-log/stored-events'
import { type Query, query, type Steps } from '#storage/operations/operation'
import { invalidatesNothing, type Write } from '#storage/operations/write'

/** Times are milliseconds since the epoch. */
export interface ConsoleSession {
  /** The SHA-256 of what the cookie has. */
  readonly digest: string
  /** What opened it, encrypted: an admin key, or the id of a session of a user. */
  readonly adminKey: string
  readonly createdAt: number
  /** The end, unless the session is used before. */
  readonly expiresAt: number
}

export interface ConsoleSessionsTable {
  digest: string
  admin_key: string
  created_at: number
  expires_at: number
}

function* addConsoleSession(
  { digest, adminKey, createdAt, expiresAt }: ConsoleSession,
  event: AuditEvent<null>,
): Steps<Write<void>> {
  yield {
    text: 'INSERT INTO console_sessions (digest, admin_key, created_at, expires_at) VALUES ($1, $2, $3, $4)',
    values: [digest, adminKey, createdAt, expiresAt],
  }
  yield recordStatement(event)
  return invalidatesNothing(undefined)
}

function* extendConsoleSession(digest: string, expiresAt: number): Steps<Write<void>> {
  yield { text: 'UPDATE console_sessions SET expires_at = $2 WHERE digest = $1', values: [digest, expiresAt] }
  return invalidatesNothing(undefined)
}

function* removeConsoleSession(digest: string): Steps<Write<void>> {
  yield { text: 'DELETE FROM console_sessions WHERE digest = $1', values: [digest] }
  return invalidatesNothing(undefined)
}

const findConsoleSession = (digest: string, now: number): Query<ConsoleSession | undefined> =>
  query(
    {
      name: 'console-session',
      text: `SELECT digest, admin_key AS "adminKey", created_at AS "createdAt", expires_at AS "expiresAt"
        FROM console_sessions WHERE digest = $1 AND $2 < expires_at`,
      values: [digest, now],
    },
    ([session]: readonly ConsoleSession[]) => session,
  )

export const sessionOperations = { addConsoleSession, extendConsoleSession, removeConsoleSession }

export const sessionReads = { findConsoleSession }
