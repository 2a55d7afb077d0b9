import { newId } from '#base/ids'
import { actingUser } from '#core/audit-log/event'
import { API_KEY_PREFIX, newOpaqueKey } from '#core/auth/opaque-key'
import { USER_SCOPES } from '#core/auth/scopes'
import type { Session } from '#core/auth/session'
import { openStorage } from '#core/store/open'
import type { ApiKeyStore } from '#features/api-keys/stored-api-keys'
import { allFeatures } from '#features/built-in'
import type { StorageLocation } from '#storage/location'

const CONNECTIONS = 10

/** Keys that are added at a time, so that their writes share transactions. */
const SLICE = 1_000

/** Adds an API key to the user of each session. @returns the keys. */
export const addApiKeys = async (
  location: StorageLocation,
  sessions: readonly Session[],
): Promise<readonly string[]> => {
  const storage = await openStorage(location, CONNECTIONS, allFeatures())
  const { addApiKey } = storage.features['api-keys'] as ApiKeyStore
  const add = async ({ id: sessionId, userId }: Session): Promise<string> => {
    const { text, digest, shownPrefix } = newOpaqueKey(API_KEY_PREFIX)
    const now = Date.now()
    const id = newId()
    const scopes = Object.keys(USER_SCOPES)
    const apiKey = {
      ...{ id, name: 'bench', digest, prefix: shownPrefix, scopes },
      ...{ createdAt: now, expiresAt: null, lastUsedAt: null },
    }
    const event = {
      ...{ id: newId(now), at: now, type: 'api-key.created', details: { apiKey: id } },
      ...{ actor: actingUser(userId, null), userId },
    }
    const outcome = await addApiKey(apiKey, sessionId, event)
    if (outcome !== 'added') throw new Error(`An API key could not be added: ${outcome}`)
    return text
  }
  const keys: string[] = []
  try {
    for (let from = 0; from < sessions.length; from += SLICE)
      keys.push(...(await Promise.all(sessions.slice(from, from + SLICE).map(add))))
  } finally {
    await storage.close()
  }
  return keys
}
