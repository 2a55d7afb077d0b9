/** `npm run cli -- seed --remove`: removes the accounts of load tests, and no others. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { createKey as createApiKey } from '../support/api-keys.ts'
import {
  accountStatus,
  asAdmin,
  build,
  JWT_SECRET,
  signIn,
  signUp,
  temporaryFolder,
} from '../support/build.ts'
import { exportAll } from '../support/bulk-users.ts'
import { runCommand } from '../support/cli.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { until } from '../support/until.ts'

const PASSWORD = 'seed password 1'

const emailsOf = async (app: FastifyInstance): Promise<string[]> =>
  (await exportAll(app)).map(({ email }) => email).sort()

await onEnginesOfRun(t, async (t, engine) => {
  t.test('removes accounts of the seed with all their data, while the service runs', async t => {
    const DATABASE_URL = await engine.newDatabase(t)
    const file = join(temporaryFolder(t), 'tokens')
    const env = { DATABASE_URL, JWT_SECRET }
    const app = await build(t, { env, realHashing: true })
    const seed = (...args: string[]) => runCommand(['seed', ...args], env)
    const others = [
      'user@seed.example',
      'user0@seed.example',
      'user01@seed.example',
      'user1234567890@seed.example',
      'user2@seed.example.com',
      'user3@example.com',
      'user4x@seed.example',
      'x.user5@seed.example',
    ]
    const tokensOfOthers = []
    for (const email of others) tokensOfOthers.push((await signUp(app, { email })).token)
    // More than one slice, so that the pages of the search join.
    t.match(await seed('--users', '450', '--tokens', file), { code: 0 })
    const tokens = readFileSync(file, 'utf8').trimEnd().split('\n')
    const [first = '', second = ''] = tokens
    t.equal(await accountStatus(app, first), 200)
    const { accessToken } = (await signIn(app, 'user1@seed.example', PASSWORD)).json()
    const { token: apiKey } = await createApiKey(app, accessToken)
    t.equal(await accountStatus(app, apiKey), 200)

    t.match(await seed('--remove', '--users', '10'), { code: 0, stdout: '10 users removed\n' })
    for (const token of [first, accessToken, apiKey])
      t.equal(
        await until(
          () => accountStatus(app, token),
          status => status === 401,
          5_000,
        ),
        401,
      )
    t.equal(await accountStatus(app, tokens[10] ?? ''), 200, 'user 11 stays')
    t.match(await seed('--remove', '--users', '10'), { code: 0, stdout: '0 users removed\n' }, 'repeated')
    const { results } = (
      await app.inject({ url: '/admin/events?type=user.deleted&limit=100', headers: asAdmin })
    ).json()
    t.equal(results.length, 10, 'each with an event')

    t.match(await seed('--users', '450', '--tokens', file), {
      code: 0,
      stdout: /^10 users added, 440 already existed/,
    })
    const again = readFileSync(file, 'utf8').trimEnd().split('\n')
    t.strictSame(again.slice(10), tokens.slice(10), 'line N is user N')
    t.not(again[1], second)

    const removal = await seed('--remove', '--json')
    t.match(removal, { code: 0, stdout: '{"removed":450,"complete":true}\n' })
    t.strictSame(await emailsOf(app), [...others].sort())
    for (const token of tokensOfOthers) t.equal(await accountStatus(app, token), 200)
  })
})

t.test('what the options must be', async t => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'test.db')
  const env = { DATABASE_URL: `sqlite:${file}` }
  const cases: [args: string[], code: number, message: RegExp, env?: object][] = [
    [['--remove'], 1, /^There is no file/],
    [['--remove'], 1, /^NODE_ENV is production: --force removes/, { NODE_ENV: 'production' }],
    [['--remove', '--tokens', 'x'], 2, /'--remove' cannot be used with option '--tokens <file>'/],
    [['--remove', '--random-seed', '1'], 2, /cannot be used with/],
    [[], 2, /^--users <number> is needed/],
    [['--users', '2', '--format', 'csv'], 2, /^--format needs --tokens <file>/],
    [['--users', '2', '--format', 'xml', '--tokens', 'x'], 2, /^--format must be/],
    [['--users', '2', '--shards', '2'], 2, /^--shards needs --tokens <file>/],
    [['--users', '2', '--shards', '3', '--tokens', 'x'], 2, /^--shards must not be higher than --users/],
    [['--users', '2', '--shards', '2', '--tokens', 'x/'], 2, /^--tokens must be a file, not a folder/],
    [['--users', '2', '--url', 'http://x', '--tokens', 'x'], 2, /^--url needs --format vegeta/],
  ]
  for (const [args, code, message, more] of cases)
    t.match(await runCommand(['seed', ...args], { ...env, ...more }), { code, stdout: '', stderr: message })
  t.notOk(existsSync(file), 'no database is created')
})
