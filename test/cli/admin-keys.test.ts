/** `keys create|list|revoke` beside a service on the same store (CLI; docs/design.md, "Account life cycle" and "Machine callers"). */
import t from 'tap'
import { ADMIN_KEY, JWT_SECRET } from '../support/build.ts'
import { INVALIDATION_LIMIT, runCommand } from '../support/cli.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { startServer } from '../support/process.ts'
import { until } from '../support/until.ts'

await onEnginesOfRun(t, async (t, { emptyDatabase }) => {
  t.test(
    'a running service accepts a key of the command line, and refuses it once it is revoked',
    async t => {
      const DATABASE_URL = await emptyDatabase(t)
      const { url } = await startServer(t, { env: { DATABASE_URL, JWT_SECRET } })
      const cli = (...args: string[]) => runCommand(['keys', ...args], { DATABASE_URL })
      const request = (path: string, key = ADMIN_KEY) =>
        fetch(url + path, { headers: { 'x-admin-key': key } })

      const expires = '2999-01-31T09:30:00.000Z'
      const scopes = 'events:read,users:read'
      const created = await cli('create', '--name', ' night job ', '--scopes', scopes, '--expires', expires)
      t.match(created, {
        code: 0,
        stdout: /^gate_adm_\w{49}\n$/,
        stderr: /^The key \S+ is shown only now\n$/,
      })
      const key = created.stdout.trim()
      t.equal((await request('/admin/users', key)).status, 200)
      t.equal((await request('/admin/keys', key)).status, 403)

      const asJson = await cli('create', '--name', 'other', '--scopes', 'keys:write', '--json')
      t.match(asJson, { code: 0, stderr: '', stdout: /^[^\n]+\n$/ })
      const other = JSON.parse(asJson.stdout)
      t.match(other, {
        adminKey: /^gate_adm_/,
        key: { name: 'other', scopes: ['keys:write'], createdBy: null },
      })
      t.equal((await request('/admin/keys', other.adminKey)).status, 200)

      const listed = JSON.parse((await cli('list', '--json')).stdout)
      t.match(listed.results, [{ id: other.key.id }, { name: 'night job', expiresAt: expires }])
      const shown = (keys: { lastUsedAt: unknown }[]) =>
        keys.map(each => ({ ...each, lastUsedAt: 'some time' }))
      const { results } = (await (await request('/admin/keys')).json()) as typeof listed
      t.strictSame(shown(listed.results), shown(results), 'as the API has it')
      const table = await cli('list')
      t.match(table.stdout, / users:read,events:read +night job\n$/)
      t.notMatch(table.stdout, key)

      const { id } = listed.results[1]
      t.match(await cli('revoke', id.toUpperCase()), { code: 0, stderr: '', stdout: /is revoked\n$/ })
      const status = await until(
        async () => (await request('/admin/users', key)).status,
        status => status === 401,
        INVALIDATION_LIMIT,
      )
      t.equal(status, 401)
      t.match(await cli('revoke', id), { code: 1, stdout: '', stderr: 'There is no such admin key\n' })
      t.equal((await request('/admin/keys', other.adminKey)).status, 200, 'other keys stay')
      const events = await runCommand(['events', '--type', 'admin-key.revoked'], { DATABASE_URL })
      t.match(events.stdout, new RegExp(`admin-key.revoked  -  +system  -  +\\{"adminKey":"${id}"\\}\n$`))
    },
  )
})
