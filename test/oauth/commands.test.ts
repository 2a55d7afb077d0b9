/** Clients on the command line (docs/operations.md, "Command line"). */
import t from 'tap'
import { build, newFile } from '../support/build.ts'
import { INVALIDATION_LIMIT, runCommand } from '../support/cli.ts'
import { adminStatus, OAUTH_ENV, ownToken, requestOwnToken } from '../support/oauth.ts'
import { until } from '../support/until.ts'

t.test('the operator registers, lists and deletes clients of a running service', async t => {
  const env = { ...OAUTH_ENV, DATABASE_URL: await newFile(t) }
  const app = await build(t, { env })
  const run = (...args: string[]) => runCommand(['clients', ...args], env)
  const runJson = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout)
  const machine = [
    'create',
    '--name',
    'Job',
    '--grants',
    'client_credentials',
    '--admin-scopes',
    'users:read',
  ]
  const { id, secret } = await runJson(...machine)
  const token = await ownToken(app, { id, secret })
  t.equal(await adminStatus(app, token), 200)
  t.match((await run('list')).stdout, `${id} `)
  const rotated = await runJson('rotate-secret', id)
  // The service notices a change of another process a moment later.
  const statusOf = (status: () => Promise<number>, expected: number) =>
    until(status, found => found === expected, INVALIDATION_LIMIT)
  for (const each of [secret, rotated.secret])
    await statusOf(async () => (await requestOwnToken(app, { id, secret: each })).statusCode, 200)
  const web = await run('create', '--name', 'Web', '--redirects', 'https://app.example.test/cb')
  t.match(web.stdout, /^[0-9a-f-]{36}\ngate_cls_/)
  t.equal((await run('delete', id)).code, 0)
  await statusOf(() => adminStatus(app, token), 401)
  t.match(await runJson('list'), { results: [{ name: 'Web' }] })
})

t.test('what is not valid is refused with the text of the HTTP API', async t => {
  const env = { ...OAUTH_ENV, DATABASE_URL: await newFile(t) }
  const run = (...args: string[]) => runCommand(['clients', ...args], env)
  const cases: readonly (readonly [string[], number, RegExp])[] = [
    [['create', '--name', 'A', '--grants', 'password'], 2, /grantTypes/],
    [['create', '--name', 'A', '--redirects', 'javascript:1'], 2, /redirectUris/],
    [['create', '--name', 'A'], 2, /redirectUris must have at least one URI/],
    [['delete', '00000000-0000-7000-8000-000000000000'], 1, /There is no such client/],
  ]
  for (const [args, code, message] of cases) {
    const result = await run(...args)
    t.equal(result.code, code, args.join(' '))
    t.match(result.stderr, message)
  }
})
