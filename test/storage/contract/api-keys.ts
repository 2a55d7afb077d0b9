/** Contract: the lookup of API keys, and the operations of their feature, with notifications (docs/design.md, "Machine callers"). */
import { setTimeout as sleep } from 'node:timers/promises'
import { v7 as uuidv7 } from 'uuid'
import type { AuditEvent } from '#core/audit-log/event'
import { API_KEY_PREFIX, newOpaqueKey } from '#core/auth/opaque-key'
import type { Storage } from '#core/store/store'
import { apiKeys as feature } from '#features/api-keys/api-keys'
import type { ApiKeyStore } from '#features/api-keys/stored-api-keys'
import { type Added, add, eventOf, NOTIFICATION_LIMIT, NOW, onChange, type Part } from './fixtures.ts'

const storeOf = (storage: Storage): ApiKeyStore => storage.features[feature.name] as ApiKeyStore

const keyEvent = (
  type: 'api-key.created' | 'api-key.revoked',
  userId: string,
  apiKey: string,
): AuditEvent => ({
  ...eventOf(userId),
  type,
  details: { apiKey },
})

/** A key as the feature stores it. */
const newKey = (fields: { expiresAt?: number } = {}) => {
  const { digest, shownPrefix } = newOpaqueKey(API_KEY_PREFIX)
  return {
    id: uuidv7(),
    name: `a "name" 'with' ẞ`,
    digest,
    prefix: shownPrefix,
    scopes: ['users:read'],
    createdAt: NOW,
    expiresAt: null,
    lastUsedAt: null,
    ...fields,
  }
}

const addKey = async (storage: Storage, { user, session }: Added, fields: { expiresAt?: number } = {}) => {
  const { digest, ...apiKey } = newKey(fields)
  const event = keyEvent('api-key.created', user.id, apiKey.id)
  const outcome = await storeOf(storage).addApiKey({ ...apiKey, digest }, session.id, event)
  if (outcome !== 'added') throw new Error(outcome)
  return { digest, apiKey }
}

export const apiKeys: Part = async (t, open) => {
  const [storage, other] = [await open(t), await open(t)]

  t.test('a key is found by its digest, with its user, unchanged', async t => {
    const owner = await add(storage)
    await addKey(storage, await add(storage))
    const { digest, apiKey } = await addKey(storage, owner, { expiresAt: NOW + 1 })
    const session = await storage.sessions.find(owner.session.id)
    const found = await storage.apiKeys.find(digest)
    t.strictSame(found?.apiKey, apiKey)
    t.strictSame(found?.user, session?.user, 'as sessions find the user')
    t.equal(found?.userKey, session?.userKey)
    t.strictSame(await storeOf(storage).listApiKeys(owner.user.id), [apiKey])
    for (const wrong of [digest.toUpperCase(), digest.slice(1), `${digest} `, '', apiKey.id])
      t.equal(await storage.apiKeys.find(wrong), undefined, wrong)
  })

  t.test('a key needs a session of its user that exists', async t => {
    const [owner, stranger] = [await add(storage), await add(storage)]
    const { addApiKey, listApiKeys } = storeOf(storage)
    const key = newKey()
    const event = keyEvent('api-key.created', owner.user.id, key.id)
    t.equal(await addApiKey(key, stranger.session.id, event), 'sessionNotFound')
    t.strictSame(await listApiKeys(owner.user.id), [])
    t.equal(await addApiKey(key, owner.session.id, event), 'added')
  })

  t.test('a key is revoked once, by its user, and every instance is notified', async t => {
    const [owner, stranger] = [await add(storage), await add(storage)]
    const { digest, apiKey } = await addKey(storage, owner)
    const revoke = (userId: string) =>
      storeOf(storage).revokeApiKey(apiKey.id, keyEvent('api-key.revoked', userId, apiKey.id), true)
    t.equal(await revoke(stranger.user.id), 'apiKeyNotFound')
    t.ok(await storage.apiKeys.find(digest))
    // The notifications about the added users come first.
    await sleep(NOTIFICATION_LIMIT)
    let isNotifiedHere = false
    onChange(storage, userId => {
      isNotifiedHere ||= userId === owner.user.id
    })
    const { promise: notifiedElsewhere, resolve } = Promise.withResolvers<string | null>()
    onChange(other, userId => {
      if (userId === null || userId === owner.user.id) resolve(userId)
    })
    t.equal(await revoke(owner.user.id), 'revoked')
    t.ok(isNotifiedHere)
    t.not(await Promise.race([notifiedElsewhere, sleep(NOTIFICATION_LIMIT, 'timeout')]), 'timeout')
    t.equal(await storage.apiKeys.find(digest), undefined)
    t.equal(await revoke(owner.user.id), 'apiKeyNotFound')
  })

  t.test('the last request of a key is raised, never lowered; removed keys are ignored', async t => {
    const owner = await add(storage)
    const { digest, apiKey } = await addKey(storage, owner)
    const lastUsedAt = async () => (await storage.apiKeys.find(digest))?.apiKey.lastUsedAt
    const { recordRequests } = storage.apiKeys
    t.equal(await lastUsedAt(), null)
    for (const [at, expected] of [
      [NOW + 5, NOW + 5],
      [NOW + 3, NOW + 5],
      [NOW + 9, NOW + 9],
    ] as const) {
      await recordRequests([
        { id: uuidv7(), at },
        { id: apiKey.id, at },
      ])
      t.equal(await lastUsedAt(), expected)
    }
    await recordRequests([])
  })
}
