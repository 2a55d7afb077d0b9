/**
 * Each command as a process of its own: it ends by itself, with its exit code and its output (CLI; docs/design.md, "Account life cycle").
 * Others share one.
 */
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/build.ts'
import { runCli } from '../support/cli.ts'

t.test('each command ends by itself', async t => {
  const env = { DATABASE_URL: `sqlite:${join(temporaryFolder(t), 'test.db')}`, NODE_ENV: 'test' }
  const succeeds = async (...args: string[]): Promise<string> => {
    const { code, stdout } = await runCli(args, env).ended
    t.equal(code, 0, args.join(' '))
    t.not(stdout, '', 'a result')
    return stdout
  }
  const file = join(temporaryFolder(t), 'users')
  await succeeds('seed', '--users', '2')
  await succeeds('users', 'create', 'ann@example.com')
  const key = await succeeds('keys', 'create', '--name', 'a key', '--scopes', 'users:read', '--json')
  await Promise.all([
    succeeds('users', 'list'),
    succeeds('users', 'get', 'ann@example.com'),
    succeeds('users', 'set-roles', 'ann@example.com', 'reader'),
    succeeds('sessions', 'list', 'ann@example.com', '--json'),
    succeeds('events'),
    succeeds('keys', 'new'),
    succeeds('keys', 'list'),
    succeeds('consumers', 'list'),
    succeeds('webhooks', 'list'),
    succeeds('texts', 'export'),
    succeeds('mail', 'test', 'ann@example.com'),
  ])
  await succeeds('users', 'disable', 'user1@seed.example')
  await succeeds('users', 'enable', 'user1@seed.example')
  await succeeds('sessions', 'revoke', 'user1@seed.example')
  await succeeds('users', 'export', '--file', file)
  await succeeds('users', 'import', file)
  await succeeds('keys', 'revoke', JSON.parse(key).key.id)
  await succeeds('users', 'delete', 'ann@example.com')
  await succeeds('--help')
})

t.test('a refused command ends with its exit code', async t => {
  const env = { DATABASE_URL: `sqlite:${join(temporaryFolder(t), 'missing.db')}` }
  t.match(await runCli(['users', 'list'], env).ended, { code: 1, stdout: '', stderr: /^There is no file / })
  const invalid = await runCli(['users', 'list', '--limit', '101'], env).ended
  t.match(invalid, { code: 2, stdout: '', stderr: /^--limit must be an integer from 1 to 100$/m })
})
