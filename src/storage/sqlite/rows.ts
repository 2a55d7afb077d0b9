import type { User } from '../../users/user.ts'

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

export const USER_COLUMNS = `users.id, users.email, users.first_name, users.last_name, users.email_verified,
  users.disabled, users.created_at, users.updated_at, last_requests.at AS last_request_at`

export const SELECT_USER = `SELECT ${USER_COLUMNS} FROM users LEFT JOIN last_requests ON last_requests.user_id = users.id`

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
