/**
 * `users` and `sessions` commands beside a service on the same store (CLI; docs/design.md, "Account life cycle", "Contract" and "Storage").
 */

import t, { type Test } from 'tap'
import { OPERATOR } from '#core/audit-log/event'
import { accountStatus, asAdmin, PASSWORD, signUp } from '../support/build.ts'
import { INVALIDATION_LIMIT, runCommand } from '../support/cli.ts'
import { type Engine, onEnginesOfRun } from '../support/engines.ts'
import { until } from '../support/until.ts'

/** A name that older versions accepted. */
const hostile = 'Evil\u001b[2J\r\nowner\u202e'

/** A running service, and the command line in the same environment without the secret, which it does not need. */
const start = async (t: Test, engine: Engine) => {
  const DATABASE_URL = await engine.newDatabase(t)
  // In this process, the commands in another one.
  const app = await engine.build(t, { env: { DATABASE_URL } })
  return {
    databaseUrl: DATABASE_URL,
    cli: (...args: string[]) => runCommand(args, { DATABASE_URL }),
    signUp: (email: string) => signUp(app, { email, firstName: 'Ann' }),
    asAdmin: async (url: string) => (await app.inject({ url, headers: asAdmin })).json(),
    status: (token: string) => accountStatus(app, token),
    /** Waits until the token is rejected. @returns milliseconds. */
    async untilRejected(token: string): Promise<number> {
      const start = Date.now()
      await until(
        () => accountStatus(app, token),
        status => status === 401,
        INVALIDATION_LIMIT,
      )
      return Date.now() - start
    },
  }
}

t.test('a running service rejects sessions that the command line ended, without a restart', t =>
  onEnginesOfRun(t, async (t, engine) => {
    const service = await start(t, engine)
    const [revoked, disabled, other] = await Promise.all(
      ['revoked', 'disabled', 'other'].map(name => service.signUp(`${name}@example.com`)),
    )
    if (!(revoked && disabled && other)) throw new Error('too few')
    for (const { token } of [revoked, disabled, other]) t.equal(await service.status(token), 200, 'cached')

    t.match(await service.cli('sessions', 'revoke', ' Revoked@Example.com'), { code: 0, stderr: '' })
    t.ok((await service.untilRejected(revoked.token)) < INVALIDATION_LIMIT, 'revoked')
    const { code, stdout } = await service.cli('users', 'disable', disabled.id.toUpperCase(), '--json')
    t.ok((await service.untilRejected(disabled.token)) < INVALIDATION_LIMIT, 'disabled')
    t.equal(code, 0)
    // The service's last requests are up to a second ahead of the store.
    const shown = (user: unknown) => ({ ...(user as object), lastRequestAt: 'some time' })
    const expected = await service.asAdmin(`/admin/users/${disabled.id}`)
    t.strictSame(shown(JSON.parse(stdout)), shown(expected), 'as the API has it')
    t.match(JSON.parse(stdout), { id: disabled.id, disabled: true })

    t.match(await service.cli('users', 'enable', disabled.email), { code: 0, stdout: /^disabled +false$/m })
    t.equal(await service.status(disabled.token), 401, 'enabling brings no token back')
    t.equal(await service.status(other.token), 200)
    const claims = Buffer.from(other.token.split('.')[1] ?? '', 'base64url').toString()
    const { sid } = JSON.parse(claims) as { sid: string }
    const end = (email: string) => service.cli('sessions', 'revoke', email, '--session', sid)
    t.match(await end(revoked.email), { code: 1, stdout: '', stderr: 'There is no such session\n' })
    t.equal(await service.status(other.token), 200, 'the session of another user')
    t.match(await end(other.email), { code: 0 })
    t.ok((await service.untilRejected(other.token)) < INVALIDATION_LIMIT, 'one session')
  }),
)

t.test('users list and get print what the admin routes return', t =>
  onEnginesOfRun(t, async (t, engine) => {
    const service = await start(t, engine)
    const ann = await service.signUp('ann@example.com')
    const older = await engine.build(t, { env: { DATABASE_URL: service.databaseUrl } })
    for (const name of ['bob', 'cem', 'dan'])
      await older.services.newAccounts.create(
        { email: `${name}@example.com`, firstName: hostile, password: PASSWORD },
        OPERATOR,
      )
    await older.close()
    await service.cli('users', 'disable', 'dan@example.com')
    t.match(await service.cli('users', 'set-roles', 'bob@example.com', 'reader', 'editor'), {
      code: 0,
      stderr: '',
      stdout: /^roles +editor reader$/m,
    })

    const pages: [args: string, query: string][] = [
      ['--limit 2 --sort firstName --count', 'limit=2&sort=firstName&count=true'],
      ['--search EV --disabled', 'search=EV&disabled=true'],
      ['--email Ann@example.com --no-disabled', 'email=ann@example.com&disabled=false'],
      ['--role editor --count', 'role=editor&count=true'],
    ]
    for (const [args, query] of pages) {
      const { code, stdout, stderr } = await service.cli('users', 'list', '--json', ...args.split(' '))
      t.match({ code, stderr }, { code: 0, stderr: '' }, args)
      t.match(stdout, /^[^\n]+\n$/, 'one line')
      const { results } = JSON.parse(stdout)
      t.ok(results.length > 0)
      t.strictSame(JSON.parse(stdout), await service.asAdmin(`/admin/users?${query}`), query)
    }
    const first = await service.cli('users', 'list', '--limit', '3', '--sort', 'createdAt', '--count')
    t.match(first, { code: 0, stderr: /^4 users in all\nThe next page: --cursor \S+\n$/ })
    const lines = first.stdout.trimEnd().split('\n')
    t.equal(lines.length, 4, 'a heading, and one line per user, with any name')
    t.match(lines[1], new RegExp(`^${ann.id} .* enabled +ann@example.com +Ann$`))
    t.notMatch(first.stdout, /[^\P{Cc}\n]|\u202e/u, 'users do not write on the screen of the operator')
    const cursor = /--cursor (\S+)/.exec(first.stderr)?.[1] ?? ''
    const second = await service.cli('users', 'list', '--sort', 'createdAt', '--cursor', cursor)
    t.match(second, { code: 0, stderr: '', stdout: /^[^\n]+\n[^\n]+ disabled +dan@example.com .*\n$/ })
    t.match(await service.cli('users', 'list', '--cursor', cursor), { code: 2, stderr: /cursor/ })

    const { stdout } = await service.cli('users', 'get', ann.email, '--json')
    t.strictSame(JSON.parse(stdout), await service.asAdmin(`/admin/users/${ann.id}`))
    const rejected = { code: 1, stdout: '', stderr: 'There is no such user\n' }
    t.strictSame(await service.cli('users', 'get', 'nobody@example.com'), rejected)
  }),
)
