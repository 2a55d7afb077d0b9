/** The tables as Kysely sees them. Moments are milliseconds since the epoch, flags 0 or 1. */

export interface UsersTable {
  id: string
  email: string
  password_hash: string
  first_name: string | null
  last_name: string | null
  /** What lists are sorted and searched by: see `searchKey`. */
  first_name_key: string
  last_name_key: string
  email_verified: number
  disabled: number
  created_at: number
  updated_at: number
}

export interface SessionsTable {
  id: string
  user_id: string
  created_at: number
  expires_at: number
  last_request_at: number
}

/**
 * Apart from `users` because it is written once a second for everybody who is active: a row here is a fifth of a
 * user's (51 bytes against 240), so the same users are on a fifth of the pages.
 */
export interface LastRequestsTable {
  user_id: string
  at: number
}

export interface DatabaseSchema {
  users: UsersTable
  sessions: SessionsTable
  last_requests: LastRequestsTable
}
