/** The tables, typed for Kysely. Timestamps are milliseconds since the epoch, flags 0 or 1. */
import type { Generated } from 'kysely'
import type { EmailTokenPurpose } from '../accounts/email-token.ts'
import type { Actor } from '../audit-log/event.ts'
import type { FieldColumns } from '../users/fields.ts'

/** With the columns of fields, `null` for none: roles and metadata are JSON. `user_roles` follows `roles` by a trigger. */
export interface UsersTable extends FieldColumns {
  /** Assigned by the store and never reused. Other tables refer to a user by this number. */
  key: Generated<number>
  id: string
  email: string
  /** `null`: no password. */
  password_hash: string | null
  email_verified: number
  disabled: number
  created_at: number
  updated_at: number
  version: number
  /** JSON, sorted; `null` for none. */
  factors: string | null
}

/** The roles of all users, in the order of creation for each role. Triggers on `users` write it. */
export interface UserRolesTable {
  role: string
  user_created_at: number
  user_id: string
  user_key: number
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
  /** `null`: an earlier release opened it. */
  method: string | null
  /** Values of RFC 8176, separated by spaces, `mfa` last; `null` for none. */
  amr: string | null
  /** `null`: when it was opened. 0: no proof counts any more. */
  authenticated_at: number | null
  /** `networkDigest` of its client; `null` if it is unknown or not the user. `known_networks` follows it by a trigger. */
  network: string | null
}

/** The newest networks of users, see `rate-limits/known-networks.ts`. A trigger on `sessions` writes it. */
export interface KnownNetworksTable {
  digest: string
  user_key: number
  /** The last sign-in from the network, up to a day older. */
  signed_in_at: number
}

/**
 * Separate from `users` because it is written once a second for every active user: rows of two numbers share pages. Keyed by the
 * users' ids, writing 25,000 random users of a million took ten times as long.
 */
export interface LastRequestsTable {
  user_key: number
  at: number
}

export interface EventsTable {
  /** Assigned by the store, see migration `0003_event_positions`. */
  position: Generated<number>
  id: string
  at: number
  type: string
  actor_type: Actor['type']
  actor_id: string | null
  /** `null` for an event that concerns no user. */
  user_id: string | null
  ip: string | null
  /** JSON. */
  details: string | null
}

export interface EmailTokensTable {
  /** Starts with the time of the token, see `accounts/email-token.ts`. */
  digest: string
  purpose: EmailTokenPurpose
  user_key: number
  email: string
  created_at: number
  expires_at: number
}

/** What users have begun with a proof of identity (`src/core/accounts/stored-pending-changes.ts`). */
export interface PendingChangesTable {
  /** The id of what waits: the digest of an e-mail token, or what a feature has chosen. */
  id: string
  user_key: number
  /** Not a reference: a change of a session that has ended is worth nothing. */
  session_id: string
  needs_code: number
  expires_at: number
}

/** Written by rate-limiter-flexible, on PostgreSQL only. */
export interface RateLimitsTable {
  key: string
  points: Generated<number>
  expire: number | null
}

/** The processes that cache, on PostgreSQL only (`src/storage/postgres/process-leases.ts`). */
export interface ProcessLeasesTable {
  id: string
  confirmed: string
  renewals: number
}

/** Written by `migrations/feature-migrations.ts`, which creates it. */
export interface FeatureMigrationsTable {
  feature: string
  name: string
  checksum: string
  ran_at: number
}

/** Written by `migrations/feature-migrations.ts`, which creates it. */
export interface MigratedFeaturesTable {
  feature: string
  fingerprint: string
}

export interface DatabaseSchema {
  users: UsersTable
  user_roles: UserRolesTable
  sessions: SessionsTable
  known_networks: KnownNetworksTable
  last_requests: LastRequestsTable
  email_tokens: EmailTokensTable
  pending_changes: PendingChangesTable
  events: EventsTable
  rate_limits: RateLimitsTable
  process_leases: ProcessLeasesTable
  feature_migrations: FeatureMigrationsTable
  migrated_features: MigratedFeaturesTable
}

/**
 * Who writes each table, in the order of references: the service, and then whether a copy contains it or it is the state of running
 * processes; or the migrations. A record, so that a
 * table that is missing does not compile. Features cannot use these names.
 */
const TABLES: Readonly<Record<keyof DatabaseSchema, 'copied' | 'state' | 'migrations'>> = {
  users: 'copied',
  user_roles: 'copied',
  sessions: 'copied',
  known_networks: 'copied',
  last_requests: 'copied',
  email_tokens: 'copied',
  pending_changes: 'copied',
  events: 'copied',
  rate_limits: 'state',
  process_leases: 'state',
  feature_migrations: 'migrations',
  migrated_features: 'migrations',
}

const tablesThat = (...kinds: readonly string[]): readonly string[] =>
  Object.entries(TABLES).flatMap(([name, kind]) => (kinds.includes(kind) ? [name] : []))

export const CORE_TABLES = tablesThat('copied', 'state', 'migrations')

/** The tables of the core that the running service writes. */
export const WRITTEN_TABLES = tablesThat('copied', 'state')

/** The tables of the core that a copy contains: a table that refers to another one is behind it. */
export const COPIED_TABLES = tablesThat('copied')
