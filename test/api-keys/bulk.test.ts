/** API keys in imports and exports (docs/design.md, "Storage" and "Machine callers"). */
import t from 'tap'
import { createKey } from '../support/api-keys.ts'
import { accountStatus, asAdmin, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { quickHashing } from '../support/fake-hashing.ts'

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
