/** Instances of 0.2.0 write to a migrated database during a rolling upgrade (docs/design.md, "Storage"). */
import type { Test } from 'tap'
import type { Storage } from '#core/store/store'
import { ALL, eventOf, NOW } from './contract/fixtures.ts'

const ID = '01900000-0000-7000-8000-00000000abcd'

const KEEP = { revokeSessions: false, invalidateTokens: false, credentialId: null, versions: null }

/** @param run runs a statement as 0.2.0 does, on both engines. */
export const worksBesidePreviousRelease = async (
  t: Test,
  storage: Storage,
  run: (text: string) => unknown,
): Promise<void> => {
  await run(`INSERT INTO users (id, email, password_hash, first_name, last_name, first_name_key, last_name_key,
    email_verified, disabled, created_at, updated_at, version)
    VALUES ('${ID}', 'old@example.com', 'hash', NULL, NULL, '', '', 0, 0, ${NOW}, ${NOW}, 1)`)
  t.match(await storage.users.find(ID), { locale: null, roles: [], userMetadata: {}, appMetadata: {} })
  const record = { roles: ['editor'], userMetadata: { a: 1 }, appMetadata: { b: 2 } }
  await storage.users.update(ID, record, eventOf(ID, NOW + 1), KEEP)
  await run(`UPDATE users SET first_name = 'Old', first_name_key = 'old', updated_at = ${NOW + 2},
    version = version + 1 WHERE id = '${ID}'`)
  t.match(await storage.users.find(ID), { firstName: 'Old', version: 3, ...record })
  const editors = { ...ALL, filter: { role: 'editor' } }
  t.match(await storage.users.list(editors), [{ id: ID }])
  await run(`DELETE FROM users WHERE id = '${ID}'`)
  t.strictSame(await storage.users.list(editors), [])
}
