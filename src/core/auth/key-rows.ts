/** The rows of API keys and admin keys: for both engines, and the features in `src/features/api-keys` and `src/features/admin-keys`. */
import type { AdminKey } from './admin-key.ts'
import type { ApiKey } from './api-key.ts'

/** Milliseconds after which an expired key is removed. Until then lists show that it has expired. */
export const EXPIRED_KEPT = 90 * 86_400_000

interface KeysTable {
  id: string
  digest: string
  name: string
  prefix: string
  scopes: string
  created_at: number
  expires_at: number | null
  /** 0 before the first request. */
  last_used_at: number
}

export interface ApiKeysTable extends KeysTable {
  user_key: number
}

export interface AdminKeysTable extends KeysTable {
  /** The id of an admin key; `null` for the operator. */
  created_by: string | null
}

export const API_KEY_COLUMNS = [
  'id',
  'name',
  'prefix',
  'scopes',
  'created_at',
  'expires_at',
  'last_used_at',
] as const satisfies readonly (keyof KeysTable)[]

export const ADMIN_KEY_COLUMNS = [
  ...API_KEY_COLUMNS,
  'created_by',
] as const satisfies readonly (keyof AdminKeysTable)[]

export type ApiKeyRow = Pick<ApiKeysTable, (typeof API_KEY_COLUMNS)[number]>
export type AdminKeyRow = Pick<AdminKeysTable, (typeof ADMIN_KEY_COLUMNS)[number]>

export const toApiKey = (row: ApiKeyRow): ApiKey => ({
  id: row.id,
  name: row.name,
  prefix: row.prefix,
  scopes: JSON.parse(row.scopes) as string[],
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  lastUsedAt: row.last_used_at === 0 ? null : row.last_used_at,
})

export const toAdminKey = (row: AdminKeyRow): AdminKey => ({ ...toApiKey(row), createdBy: row.created_by })
