/** The tables as Kysely sees them. Timestamps are milliseconds since the epoch, flags 0 or 1. */
import type { Generated } from 'kysely'
import type { EmailTokenPurpose } from '../accounts/email-token.ts'
import type { Actor, EventType } from '../audit-log/event.ts'

export interface UsersTable {
  /** The store's own number, never given twice; what other tables refer to a user by. */
  key: Generated<number>
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
  version: number
}

export interface SessionsTable {
  id: string
  user_key: number
  created_at: number
  expires_at: number
  last_request_at: number
  ip: string | null
  user_agent: string | null
  impersonated_by: string | null
}

/**
 * Apart from `users` because it is written once a second for everybody who is active: a row here is a number and a timestamp,
 * so that many share a page. Written by the users' ids, 25,000 random ones of a million took ten times as long.
 */
export interface LastRequestsTable {
  user_key: number
  at: number
}

export interface EventsTable {
  /** See `0003-event-positions.ts`; given by the store. */
  position: Generated<number>
  id: string
  at: number
  type: EventType
  actor_type: Actor['type']
  actor_id: string | null
  user_id: string
  ip: string | null
  /** JSON. */
  details: string | null
}

export interface EmailTokensTable {
  /** Begins with the time of the token, see `accounts/email-token.ts`. */
  digest: string
  purpose: EmailTokenPurpose
  user_key: number
  email: string
  created_at: number
  expires_at: number
}

/** Written by rate-limiter-flexible, on PostgreSQL only. */
export interface RateLimitsTable {
  key: string
  points: Generated<number>
  expire: number | null
}

/** Written by `copy`, on PostgreSQL only: made by the first copy into a database, see `copy/statements.ts`. */
export interface CopiedRowsTable {
  id: string
}

export interface CopiedEventsTable {
  source: string
  position: number
}

export interface DatabaseSchema {
  users: UsersTable
  sessions: SessionsTable
  last_requests: LastRequestsTable
  email_tokens: EmailTokensTable
  events: EventsTable
  rate_limits: RateLimitsTable
  copied_rows: CopiedRowsTable
  copied_events: CopiedEventsTable
}
