/** Rows of users as both engines return them, and the columns that a change of one sets. */
import type { Session } from '../auth/session.ts'
import { searchKey, type User, type UserChanges } from '../users/user.ts'

/** A user as the engine returns one. */
export interface UserRow {
  id: string
  email: string
  first_name: string | null
  last_name: string | null
  email_verified: number
  disabled: number
  created_at: number
  updated_at: number
  last_request_at: number | null
}

/**
 * What a user is read by, with a condition on `users` behind it. Without a join: SQLite as better-sqlite3 builds it
 * (ENABLE_STAT4) plans a join anew for every value that it is asked for, which took 20 µs where this takes 4.
 */
export const selectUser = (...columns: readonly string[]): string =>
  `SELECT ${['id, email, first_name, last_name, email_verified, disabled, created_at, updated_at', ...columns].join(', ')},
  (SELECT at FROM last_requests WHERE user_key = users.key) AS last_request_at FROM users`

export const toUser = (row: UserRow): User => ({
  id: row.id,
  email: row.email,
  firstName: row.first_name,
  lastName: row.last_name,
  emailVerified: row.email_verified === 1,
  disabled: row.disabled === 1,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  lastRequestAt: row.last_request_at,
})

/** A session as both engines return it. */
export interface SessionRow {
  id: string
  created_at: number
  expires_at: number
  last_request_at: number
  ip: string | null
  user_agent: string | null
}

export const SESSION_COLUMNS = 'id, created_at, expires_at, last_request_at, ip, user_agent'

export const toSession = (row: SessionRow, userId: string): Session => ({
  id: row.id,
  userId,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  lastRequestAt: row.last_request_at,
  ip: row.ip,
  userAgent: row.user_agent,
})

/** The columns that a change sets. */
export const changedColumns = ({
  firstName,
  lastName,
  email,
  emailVerified,
  disabled,
}: UserChanges): Record<string, unknown> => ({
  ...(firstName !== undefined && { first_name: firstName, first_name_key: searchKey(firstName) }),
  ...(lastName !== undefined && { last_name: lastName, last_name_key: searchKey(lastName) }),
  ...(email !== undefined && { email }),
  ...(emailVerified !== undefined && { email_verified: Number(emailVerified) }),
  ...(disabled !== undefined && { disabled: Number(disabled) }),
})
