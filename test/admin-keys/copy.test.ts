/** A copy to PostgreSQL has the admin keys and their events (docs/design.md, "Storage" and "Machine callers"). */
import { join } from 'node:path'
import t from 'tap'
import { allFeatures } from '#features/built-in'
import { createKey, listKeys, listStatus, revokeKey, type TestKey } from '../support/admin-keys.ts'
import { impersonate } from '../support/admin-routes.ts'
import { accountStatus, asAdmin, build, signUp, temporaryFolder } from '../support/build.ts'
import { copyHere } from '../support/copy-runs.ts'
import { newDatabase } from '../support/postgres.ts'
import { execute } from '../support/stored-rows.ts'
import { until } from '../support/until.ts'

t.test('keys from before users:identity are copied with it, once the source is migrated', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  const env = { DATABASE_URL: `sqlite:${file}` }
  const source = await build(t, { env })
  const { id } = await createKey(source, ['users:write', 'events:read'])
  await source.close()
  await execute(env.DATABASE_URL, `DELETE FROM feature_migrations WHERE name = '0002_users_identity'`)
  const url = await newDatabase(t)
  const refused =
    /has not run the same migrations of the feature admin-keys .*start this version with it once/
  await t.rejects(copyHere(file, url, allFeatures()), refused)
  await (await build(t, { env })).close()
  await copyHere(file, url, allFeatures())
  const target = await build(t, { env: { DATABASE_URL: url } })
  t.match(await listKeys(target), [{ id, scopes: ['users:write', 'users:identity', 'events:read'] }])
})

t.test('admin keys work after a copy, and revoked ones stay revoked', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  const url = await newDatabase(t)
  const source = await build(t, { env: { DATABASE_URL: `sqlite:${file}` } })
  const kept = await createKey(source, ['users:read'])
  const revokedThere = await createKey(source, ['users:read'])
  const revokedHere = await createKey(source, ['users:read'])
  const events = async (app: typeof source) =>
    (await app.inject({ url: '/admin/events?sort=at', headers: asAdmin })).json().results
  const before = await events(source)
  t.equal(before.length, 3)

  const first = await copyHere(file, url, allFeatures())
  t.match(first, { events: 3, tables: { admin_keys: { added: 3, changed: 0, conflicts: 0 } } })
  const target = await build(t, { env: { DATABASE_URL: url } })
  for (const { headers } of [kept, revokedThere, revokedHere]) t.equal(await listStatus(target, headers), 200)
  t.strictSame(await events(target), before, 'without a user')

  const { id } = await signUp(source)
  const open = async (app: typeof source, key: TestKey): Promise<string> =>
    (await impersonate(app, id, key.headers)).json().accessToken
  await copyHere(file, url, allFeatures())
  const impersonators = {
    kept: await createKey(source, ['users:impersonate']),
    revokedThere: await createKey(source, ['users:impersonate']),
    revokedHere: await createKey(source, ['users:impersonate']),
  }
  await copyHere(file, url, allFeatures())
  const tokens = {
    kept: await open(target, impersonators.kept),
    revokedHere: await open(target, impersonators.revokedHere),
  }
  t.equal(await revokeKey(target, impersonators.revokedThere.id), 204)
  t.equal(await revokeKey(source, impersonators.revokedHere.id), 204)
  const openedLater = await open(source, impersonators.revokedThere)
  await copyHere(file, url, allFeatures())
  t.equal(await accountStatus(target, tokens.kept), 200)
  const ended = () => accountStatus(target, tokens.revokedHere)
  t.equal(await until(ended, status => status === 401, 1_000), 401, 'its key was revoked in the source')
  t.equal(await accountStatus(target, openedLater), 401, 'its key was revoked in the target')

  t.equal(await revokeKey(target, revokedThere.id), 204)
  t.equal(await revokeKey(source, revokedHere.id), 204)
  const second = await copyHere(file, url, allFeatures())
  t.match(second, { events: 1, tables: { admin_keys: { added: 0, deleted: 1 } } })
  const impersonating = Object.values(impersonators).map(key => key.id)
  const keys = (await listKeys(target)).filter(({ id }: { id: string }) => !impersonating.includes(id))
  t.strictSame(
    keys.map(({ id }: { id: string }) => id),
    [kept.id],
  )
  t.equal(await listStatus(target, revokedThere.headers), 401)
  const statusHere = () => listStatus(target, revokedHere.headers)
  t.equal(await until(statusHere, status => status === 401, 1_000), 401, 'the running instance is notified')
})
