/**
 * `npm run cli -- users create|delete`, `sessions list`, `events`: the same results as the API (CLI; docs/design.md, "Account life cycle").
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import {
  accountStatus,
  asAdmin,
  bearer,
  build,
  JWT_SECRET,
  PASSWORD,
  signIn,
  signUp,
  temporaryFolder,
} from '../support/build.ts'
import { INVALIDATION_LIMIT, runCli, runCommand } from '../support/cli.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { until } from '../support/until.ts'

/** The service in this process, and the command line on the same store. */
const start = async (t: Test, DATABASE_URL: string) => {
  const env = { DATABASE_URL, JWT_SECRET, PASSWORD_MIN_LENGTH: '10' }
  const app = await build(t, { env, realHashing: true })
  return {
    app,
    cli: (...args: string[]) => runCommand(args, env),
    pipe: (input: string | Buffer, ...args: string[]) => runCommand(args, env, input),
    open: (...args: string[]) => runCli(args, env, 'pipe'),
    asAdmin: async (url: string) => (await app.inject({ url, headers: asAdmin })).json(),
  }
}

/** An error body as the command line prints it. */
const inSentences = ({ errors }: { errors: Record<string, string[]> }): string[] =>
  Object.entries(errors).flatMap(([field, messages]) =>
    messages.map(message => (field === 'global' ? message : `The ${field} ${message}`)),
  )

t.test('users create opens the account that POST /admin/users opens', t =>
  onEnginesOfRun(t, async (t, engine) => {
    const service = await start(t, await engine.newDatabase(t))
    const fields = ['--first-name', '  Ann ', '--last-name', 'Łucja', '--locale', 'de-ch']
    const options = [...fields, '--email-verified', '--json']
    // Only the first part is awaited: the pipe stays open.
    const typed = service.open('users', 'create', ' Ann@Example.com', '--password-stdin', ...options)
    typed.process.stdin?.write(`${PASSWORD}\r\nnot the password\n`)
    const created = await typed.ended
    t.match(created, { code: 0, stderr: '' })
    const ann = JSON.parse(created.stdout)
    const expected = { firstName: 'Ann', lastName: 'Łucja', locale: 'de-CH', emailVerified: true }
    t.match(ann, { email: 'ann@example.com', ...expected })
    t.strictSame(ann, await service.asAdmin(`/admin/users/${ann.id}`))
    t.equal((await signIn(service.app, 'ann@example.com')).statusCode, 200)
    const { results } = await service.asAdmin(`/admin/events?userId=${ann.id}&type=user.created`)
    t.match(results, [{ actor: { type: 'system', id: null }, ip: null }])
    t.equal(results.length, 1)

    t.match(await service.cli('users', 'create', 'bob@example.com'), {
      code: 0,
      stderr: '',
      stdout: /^emailVerified +false$/m,
    })
    for (const password of ['', PASSWORD])
      t.equal((await signIn(service.app, 'bob@example.com', password)).statusCode, 401, 'waits for a reset')
    const taken = await service.pipe(PASSWORD, 'users', 'create', 'BOB@example.com', '--password-stdin')
    t.strictSame(taken, { code: 1, stdout: '', stderr: 'The email is already taken\n' })
  }),
)

t.test('users create rejects what POST /admin/users rejects, without repeating the values', async t => {
  const DATABASE_URL = `sqlite:${join(temporaryFolder(t), 'test.db')}`
  const service = await start(t, DATABASE_URL)
  const wrong: Record<string, string>[] = [
    { email: 'nobody', password: 'short', firstName: '' },
    { email: 'eve@example.com', password: '' },
    { email: 'eve@example.com', password: '9_letters' },
    { email: 'eve@example.com', password: 'Password12' },
    { email: 'evelina.long@example.com', password: 'Evelina.Long' },
    { email: 'eve@example.com', password: '87654321' },
    { email: 'eve@example.com', password: '12341234' },
    { email: 'eve@example.com', password: '         ' },
    { email: 'eve@example.com', password: 'x'.repeat(129), firstName: 'x'.repeat(129) },
  ]
  const create = ({ email = '', password = '', firstName }: Record<string, string>) =>
    service.pipe(
      password,
      ...['users', 'create', email, '--password-stdin'],
      ...(firstName === undefined ? [] : ['--first-name', firstName]),
    )
  const ended = await Promise.all(wrong.map(create))
  for (const [index, payload] of wrong.entries()) {
    const { code, stdout, stderr = '' } = ended[index] ?? {}
    t.match({ code, stdout }, { code: 2, stdout: '' })
    const response = await service.app.inject({
      method: 'POST',
      url: '/admin/users',
      headers: asAdmin,
      payload,
    })
    t.equal(response.statusCode, 400)
    t.strictSame(stderr.trimEnd().split('\n').sort(), inSentences(response.json()).sort())
    if (payload.password) t.notMatch(stderr, payload.password)
  }
  const long = await create({ email: 'eve@example.com', password: PASSWORD.repeat(2_000) })
  t.strictSame(long, { code: 2, stdout: '', stderr: 'The password must have at most 128 characters\n' })
  t.equal((await service.asAdmin('/admin/users?count=true')).total, 0)
})

t.test('D12: a byte order mark before standard input is dropped, and that of UTF-16 refused', async t => {
  const DATABASE_URL = `sqlite:${join(temporaryFolder(t), 'test.db')}`
  const service = await start(t, DATABASE_URL)
  const create = (email: string, input: string | Buffer) =>
    service.pipe(input, 'users', 'create', email, '--password-stdin')
  t.match(await create('marked@example.com', `\ufeff${PASSWORD}\r\n`), { code: 0, stderr: '' })
  t.equal((await signIn(service.app, 'marked@example.com')).statusCode, 200)
  const line = '{"email":"imported@example.com"}'
  const imported = await service.pipe(`\ufeff\r\n${line}`, 'users', 'import')
  t.match(imported, { code: 0, stdout: '1 user created, 0 already existed, 0 lines failed\n' })
  for (const text of [PASSWORD, line]) {
    const utf16 = Buffer.from(`\ufeff${text}\r\n`, 'utf16le')
    const refused = { code: 1, stdout: '', stderr: 'Standard input is in UTF-16: save it as UTF-8\n' }
    t.strictSame(await create('wide@example.com', utf16), refused)
    t.strictSame(await service.pipe(utf16.swap16(), 'users', 'import'), refused)
  }
})

t.test('D1: an e-mail that only looks like the canonical one of a user finds nobody', async t => {
  const DATABASE_URL = `sqlite:${join(temporaryFolder(t), 'test.db')}`
  const service = await start(t, DATABASE_URL)
  await signUp(service.app, { email: 'jack@example.com' })
  const nobody = { code: 1, stdout: '', stderr: 'There is no such user\n' }
  for (const email of ['jac\u212a@example.com', 'jack@example.com\u00a0']) {
    for (const command of [
      ['users', 'get'],
      ['users', 'delete'],
      ['sessions', 'revoke'],
    ])
      t.strictSame(await service.cli(...command, email), nobody, command.join(' '))
    t.strictSame(await service.cli('events', '--user', email), nobody)
    for (const command of [
      ['users', 'create', email],
      ['users', 'list', '--email', email],
    ])
      t.match(await service.cli(...command), {
        code: 2,
        stdout: '',
        stderr: /must have ASCII characters only/,
      })
  }
  t.match(await service.cli('users', 'list', '--email', ' JACK@example.com '), { stdout: /jack@example.com/ })
})

t.test('users create and set-roles write roles and metadata, by the rules of the API', t =>
  onEnginesOfRun(t, async (t, engine) => {
    const service = await start(t, await engine.newDatabase(t))
    const metadata = ['--user-metadata', '{"a":["ü"]}', '--app-metadata', '{"plan":"pro"}']
    const created = await service.cli(
      ...[
        'users',
        'create',
        'ann@example.com',
        '--role',
        'reader',
        '--role',
        'editor',
        ...metadata,
        '--json',
      ],
    )
    t.match(created, { code: 0, stderr: '' })
    const ann = JSON.parse(created.stdout)
    t.match(ann, { roles: ['editor', 'reader'], userMetadata: { a: ['ü'] }, appMetadata: { plan: 'pro' } })
    t.strictSame(ann, await service.asAdmin(`/admin/users/${ann.id}`))
    const shown = await service.cli('users', 'get', 'ann@example.com')
    t.match(shown.stdout, /^roles +editor reader$/m)
    t.match(shown.stdout, /^userMetadata +\{"a":\["ü"\]\}$/m)

    const set = await service.cli('users', 'set-roles', 'ANN@example.com', 'z', 'billing:read', '--json')
    t.match(set, { code: 0, stderr: '' })
    t.match(JSON.parse(set.stdout), { roles: ['billing:read', 'z'], appMetadata: { plan: 'pro' } })
    const cleared = await service.cli('users', 'set-roles', ann.id)
    t.match(cleared, { code: 0, stderr: '', stdout: /^roles +-$/m })
    t.strictSame((await service.asAdmin(`/admin/users/${ann.id}`)).roles, [])
    const { results } = await service.asAdmin(`/admin/events?userId=${ann.id}&type=user.changed`)
    t.match(results, [
      { actor: { type: 'system' }, details: { fields: ['roles'] } },
      { actor: { type: 'system' }, details: { fields: ['roles'] } },
    ])

    const ROLE = 'must be a role: a to z first, then at most 63 of a to z, 0 to 9, :, _ and -'
    const refused: [args: string[], code: number, stderr: string][] = [
      [['set-roles', ann.id, 'ok', 'Editor'], 2, `The roles.1 ${ROLE}\n`],
      [['set-roles', ann.id, 'a', 'a'], 2, 'The roles must not have the same entry twice\n'],
      [['set-roles', 'nobody@example.com', 'a'], 1, 'There is no such user\n'],
      [['create', 'bob@example.com', '--role', 'Editor'], 2, `The roles.0 ${ROLE}\n`],
      [
        ['create', 'bob@example.com', '--locale', 'german'],
        2,
        'The locale must be a language tag (BCP 47), such as de or en-GB\n',
      ],
      [['create', 'bob@example.com', '--app-metadata', '[]'], 2, 'The appMetadata must be object\n'],
      [['create', 'bob@example.com', '--app-metadata', '{'], 2, '--app-metadata must be a JSON object\n'],
      [
        ['create', 'bob@example.com', '--user-metadata', '{"a":1,"a":2}'],
        2,
        '--user-metadata must be a JSON object\n',
      ],
      [['list', '--role', 'Editor'], 2, `--role ${ROLE}\n`],
    ]
    const ended = await Promise.all(refused.map(([args]) => service.cli('users', ...args)))
    for (const [index, [args, code, stderr]] of refused.entries())
      t.strictSame(ended[index], { code, stdout: '', stderr }, args.join(' '))
    t.equal((await service.asAdmin('/admin/users?count=true')).total, 1)
  }),
)

t.test('users delete removes the user with all sessions, and frees the e-mail', t =>
  onEnginesOfRun(t, async (t, engine) => {
    const service = await start(t, await engine.newDatabase(t))
    const [ann, bob] = [await signUp(service.app), await signUp(service.app)]
    for (const { token } of [ann, bob]) t.equal(await accountStatus(service.app, token), 200, 'cached')
    const removed = await service.cli('users', 'delete', ann.email.toUpperCase())
    t.strictSame(removed, {
      code: 0,
      stdout: `${ann.email} (${ann.id}) and all their data were removed\n`,
      stderr: '',
    })
    const before = Date.now()
    while ((await accountStatus(service.app, ann.token)) !== 401 && Date.now() - before < INVALIDATION_LIMIT)
      await sleep(20)
    t.equal(await accountStatus(service.app, ann.token), 401, 'a running service was notified')
    const rejected = { code: 1, stdout: '', stderr: 'There is no such user\n' }
    t.strictSame(await service.cli('users', 'delete', ann.id), rejected)
    t.not((await signUp(service.app, { email: ann.email })).id, ann.id)
    t.equal(await accountStatus(service.app, bob.token), 200)
    const silent = await service.cli('users', 'delete', bob.id, '--json')
    t.strictSame(silent, { code: 0, stdout: '', stderr: '' }, 'as the API, which returns 204')
    const { results } = await service.asAdmin('/admin/events?type=user.deleted')
    t.match(results, [{ userId: bob.id, actor: { type: 'system' } }, { userId: ann.id }])
  }),
)

t.test('sessions list shows what the user sees; sessions revoke takes an id from it', t =>
  onEnginesOfRun(t, async (t, engine) => {
    const service = await start(t, await engine.newDatabase(t))
    const user = await signUp(service.app)
    const userAgent = 'Evil\u001b[2J\u202eagent'
    const headers = { 'user-agent': userAgent }
    const payload = { email: user.email, password: PASSWORD }
    await service.app.inject({ method: 'POST', url: '/account/sign-in', headers, payload })

    const { code, stdout, stderr } = await service.cli('sessions', 'list', user.email, '--json')
    t.match({ code, stderr }, { code: 0, stderr: '' })
    const { results } = JSON.parse(stdout)
    t.match(results, [{ ip: '127.0.0.1', userAgent, impersonated: false }, { userAgent: 'lightMyRequest' }])
    const { body } = await service.app.inject({ url: '/account/sessions', headers: bearer(user.token) })
    // `lastRequestAt` differs: GET /account counts as a request, the command line does not.
    const shown = (sessions: object[]) =>
      sessions.map(session => ({ ...session, current: false, lastRequestAt: 'some time' }))
    t.strictSame(shown(results), shown(JSON.parse(body).results))
    t.notOk(results.some(({ current }: { current: boolean }) => current))

    const table = await service.cli('sessions', 'list', user.id)
    t.match(table, { code: 0, stderr: '' })
    t.equal(table.stdout.trimEnd().split('\n').length, 3)
    t.notMatch(table.stdout, /[^\P{Cc}\n]|\u202e/u)
    const revoked = await service.cli('sessions', 'revoke', user.id, '--session', results[0].id)
    t.match(revoked, { code: 0 })
    const rest = JSON.parse((await service.cli('sessions', 'list', user.id, '--json')).stdout)
    t.strictSame(rest.results, results.slice(1))
  }),
)

t.test('events prints what GET /admin/events returns', t =>
  onEnginesOfRun(t, async (t, engine) => {
    const service = await start(t, await engine.newDatabase(t))
    const [ann, bob] = [await signUp(service.app), await signUp(service.app)]
    await signIn(service.app, ann.email)
    await service.app.inject({ method: 'DELETE', url: `/admin/users/${bob.id}`, headers: asAdmin })
    const all = (await service.asAdmin('/admin/events')).results
    const [newest, , oldest] = all

    const pages: [args: string, query: string, events: number][] = [
      ['', '', 4],
      [`--user ${ann.email} --limit 1`, `userId=${ann.id}&limit=1`, 1],
      [`--user ${bob.id.toUpperCase()} --type user.deleted`, `userId=${bob.id}&type=user.deleted`, 1],
      [`--before ${newest.at} --after 2026-01-01T00:00:00Z`, `before=${newest.at}`, 3],
      ['--sort at --limit 2', 'sort=at&limit=2', 2],
    ]
    const results = await Promise.all(
      pages.map(([args]) => service.cli('events', '--json', ...args.split(' ').filter(Boolean))),
    )
    for (const [index, [args, query, events]] of pages.entries()) {
      const { code, stdout = '', stderr } = results[index] ?? {}
      t.match({ code, stderr }, { code: 0, stderr: '' }, args)
      t.strictSame(JSON.parse(stdout), await service.asAdmin(`/admin/events?${query}`), args)
      t.equal(JSON.parse(stdout).results.length, events, args)
    }
    const first = await service.cli('events', '--limit', '2')
    t.match(first, { code: 0, stderr: /^The next page: --cursor \S+\n$/ })
    t.match(first.stdout.split('\n')[1], new RegExp(`^${newest.at} .*user\\.deleted .*${bob.id} .*adminKey `))
    const cursor = /--cursor (\S+)/.exec(first.stderr)?.[1] ?? ''
    const second = await service.cli('events', '--limit', '2', '--cursor', cursor)
    t.match(second, { code: 0, stderr: '' })
    t.match(second.stdout.split('\n')[1], oldest.at)
  }),
)

t.test('events --follow prints new events until Ctrl-C, and prints the cursor to continue from', t =>
  onEnginesOfRun(t, async (t, engine) => {
    const DATABASE_URL = await engine.newDatabase(t)
    const { app } = await start(t, DATABASE_URL)
    await signUp(app)
    // On PostgreSQL an event waits for transactions that began before its own.
    const { nextCursor } = await until(
      async () => (await app.inject({ url: '/admin/events?sort=at', headers: asAdmin })).json(),
      ({ results }) => results.length === 1,
      INVALIDATION_LIMIT * 4,
    )
    const { id } = await signUp(app)
    const following = runCli(['events', '--follow', '--json', '--cursor', nextCursor], { DATABASE_URL })
    t.teardown(() => following.process.kill('SIGKILL'))
    const lines = () => following.stdout().split('\n').slice(0, -1)
    const linesAt = (count: number) => until(lines, ({ length }) => length === count, INVALIDATION_LIMIT * 4)
    await linesAt(1)
    await app.inject({ method: 'DELETE', url: `/admin/users/${id}`, headers: asAdmin })
    const events = (await linesAt(2)).map(line => JSON.parse(line))
    t.match(events, [
      { type: 'user.signed-up', userId: id },
      { type: 'user.deleted', userId: id },
    ])
    following.process.kill('SIGINT')
    const { code, stdout, stderr } = await following.ended
    t.equal(code, 0)
    t.equal(stdout.split('\n').length, 3)
    const cursor = /^To continue from here: --cursor (\S+)$/m.exec(stderr)?.[1]
    const url = `/admin/events?sort=at&cursor=${cursor}`
    t.strictSame((await app.inject({ url, headers: asAdmin })).json(), { results: [], nextCursor: cursor })
  }),
)

t.test('events rejects what GET /admin/events rejects', async t => {
  const service = await start(t, `sqlite:${join(temporaryFolder(t), 'test.db')}`)
  const failures: [args: string[], sentence: RegExp][] = [
    [['--type', 'user.eaten'], /^--type must be one of user\.created, /m],
    [['--after', 'yesterday'], /^--after must be a timestamp with a time zone, such as 2026-/m],
    [['--cursor', 'nonsense'], /^The cursor is not a cursor of this list$/m],
  ]
  const ended = await Promise.all(failures.map(([args]) => service.cli('events', ...args)))
  for (const [index, [, stderr]] of failures.entries()) t.match(ended[index], { code: 2, stdout: '', stderr })
})
