/** The rows of API keys, which both engines and the feature in `src/api-keys` read. */
import type { ApiKey } from '../auth/api-key.ts'

export interface ApiKeysTable {
  id: string
  user_key: number
  digest: string
  name: string
  prefix: string
  /** JSON. */
  scopes: string
  created_at: number
  expires_at: number | null
  /** 0 before the first request. */
  last_used_at: number
}

export const API_KEY_COLUMNS = [
  'id',
  'name',
  'prefix',
  'scopes',
  'created_at',
  'expires_at',
  'last_used_at',
] as const satisfies readonly (keyof ApiKeysTable)[]

export type ApiKeyRow = Pick<ApiKeysTable, (typeof API_KEY_COLUMNS)[number]>

export const toApiKey = (row: ApiKeyRow): ApiKey => ({
  id: row.id,
  name: row.name,
  prefix: row.prefix,
  scopes: JSON.parse(row.scopes) as string[],
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  lastUsedAt: row.last_used_at === 0 ? null : row.last_used_at,
})
