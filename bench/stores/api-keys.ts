import type { ApiKeyStore } from '../../src/api-keys/stored-api-keys.ts'
import { actingUser } from '../../src/audit-log/event.ts'
import { API_KEY_PREFIX, newOpaqueKey } from '../../src/auth/opaque-key.ts'
import { USER_SCOPES } from '../../src/auth/scopes.ts'
import type { Session } from '../../src/auth/session.ts'
import { allFeatures } from '../../src/built-in-features.ts'
import { newId } from '../../src/ids.ts'
import type { StorageLocation } from '../../src/storage/location.ts'
import { openStorage } from '../../src/storage/open.ts'

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
