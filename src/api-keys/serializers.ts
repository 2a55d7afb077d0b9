import type { ApiKey } from '../auth/api-key.ts'

const toIso = (timestamp: number | null): string | null =>
  timestamp === null ? null : new Date(timestamp).toISOString()

export const serializeApiKey = (apiKey: ApiKey) => ({
  ...apiKey,
  createdAt: new Date(apiKey.createdAt).toISOString(),
  expiresAt: toIso(apiKey.expiresAt),
  lastUsedAt: toIso(apiKey.lastUsedAt),
})
