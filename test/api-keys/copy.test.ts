/** API keys in copies to PostgreSQL, imports and exports (docs/design.md, "Storage" and "Machine callers"). */
import { join } from 'node:path'
import t from 'tap'
import { createKey, listKeys, revokeKey } from '../support/api-keys.ts'
import { accountStatus, asAdmin, build, signUp, temporaryFolder } from '../support/build.ts'
import { copyHere } from '../support/copy-runs.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { newDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'

t.test('`copy` moves keys, and a repeated copy restores no revoked one', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  const url = await newDatabase(t)
  const source = await build(t, { env: { DATABASE_URL: `sqlite:${file}` }, hasher: quickHashing })
  const user = await signUp(source)
  const [kept, revokedThere, revokedHere] = [
    await createKey(source, user.token, { name: 'kept', scopes: ['account:read'] }),
    await createKey(source, user.token),
    await createKey(source, user.token),
  ]
  const keys = await listKeys(source, user.token)
  t.match(await copyHere(file, url), { tables: { api_keys: { added: 3 } }, complete: true })

  const target = await build(t, { env: { DATABASE_URL: url }, hasher: quickHashing })
  t.strictSame(await listKeys(target, user.token), keys)
  for (const { token } of [kept, revokedThere, revokedHere]) t.equal(await accountStatus(target, token), 200)
  t.equal((await revokeKey(target, user.token, revokedThere.apiKey.id)).statusCode, 204)
  t.equal((await revokeKey(source, user.token, revokedHere.apiKey.id)).statusCode, 204)
  const added = await createKey(source, user.token)
  t.equal(await accountStatus(source, revokedThere.token), 200, 'the source still has it')
  await copyHere(file, url)

  const statusHere = () => accountStatus(target, revokedHere.token)
  t.equal(await until(statusHere, status => status === 401, 1_000), 401, 'the running instance is notified')
  t.equal(await accountStatus(target, kept.token), 200)
  t.equal(await accountStatus(target, revokedThere.token), 401, 'revoked in the target')
  t.equal(await accountStatus(target, added.token), 200, 'new in the source')
})

await onEnginesOfRun(t, async (t, { build }) => {
  t.test('an export contains no keys, and an import of it restores none', async t => {
    const app = await build(t, { hasher: quickHashing })
    const user = await signUp(app)
    const { token, apiKey } = await createKey(app, user.token, { name: 'a script of mine' })
    const exported = await app.inject({
      url: '/admin/users/export?passwordHashes=true',
      headers: asAdmin,
    })
    t.match(exported.body, user.id)
    for (const part of [apiKey.id, apiKey.prefix, apiKey.name]) t.notOk(exported.body.includes(part), part)
    const other = await build(t, { hasher: quickHashing })
    const { lastRequestAt: _, ...line } = JSON.parse(exported.body)
    const imported = await other.inject({
      method: 'POST',
      url: '/admin/users/import',
      headers: { ...asAdmin, 'content-type': 'application/x-ndjson' },
      payload: `${JSON.stringify(line)}\n`,
    })
    t.match(imported.body, '"created":1')
    t.equal(await accountStatus(other, token), 401)
  })
})
