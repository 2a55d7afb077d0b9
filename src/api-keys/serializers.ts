import type { ApiKey } from '../auth/api-key.ts'
import { toIso, toIsoOrNull } from '../users/serializers.ts'

export const serializeApiKey = (apiKey: ApiKey) => ({
  ...apiKey,
  createdAt: toIso(apiKey.createdAt),
  expiresAt: toIsoOrNull(apiKey.expiresAt),
  lastUsedAt: toIsoOrNull(apiKey.lastUsedAt),
})
