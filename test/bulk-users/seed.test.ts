/** `npm run cli -- seed`: accounts and tokens for load tests (CLI; docs/design.md, "Account life cycle"). */
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { schemaOf } from '#core/store/migrations'
import { migrate } from '#storage/postgres/migrate'
import {
  accountStatus,
  asAdmin,
  bearer,
  build,
  JWT_SECRET,
  signIn,
  signUp,
  temporaryFolder,
  updateUser,
} from '../support/build.ts'
import { runCli, runCommand } from '../support/cli.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { createDatabase, holdAt, query } from '../support/postgres.ts'

const tokensIn = (file: string): string[] => readFileSync(file, 'utf8').replace(/\n$/, '').split('\n')

/** The e-mail of a token's user; `undefined` if it is not valid. */
const emailOf = async (app: FastifyInstance, token: string): Promise<string | undefined> =>
  (await app.inject({ url: '/account', headers: bearer(token) })).json().email

t.test('seed creates users with one password and a token each; repeated, it adds missing ones', t =>
  onEnginesOfRun(t, async (t, engine) => {
    const DATABASE_URL = await engine.emptyDatabase(t)
    const file = join(temporaryFolder(t), 'tokens')
    writeFileSync(file, 'something longer than what comes\n'.repeat(1_000))
    chmodSync(file, 0o644)
    const env = { DATABASE_URL, JWT_SECRET }
    const seed = (...args: string[]) => runCommand(['seed', ...args], env)

    t.match(await seed('--users', '20', '--password', 'another password'), {
      code: 0,
      stdout: '20 users added, 0 already existed\n',
      stderr: '20 of 20 users\n',
    })
    const app = await build(t, { env, realHashing: true })
    t.equal((await signIn(app, 'user20@seed.example', 'another password')).statusCode, 200)
    const { id: otherUser } = await signUp(app, { email: 'user25@seed.example' })
    const list = async () =>
      (await app.inject({ url: '/admin/users?limit=100&sort=createdAt', headers: asAdmin })).json().results
    const before = await list()
    const disabled = before[3]
    await updateUser(app, disabled.id, { disabled: true })

    const { code, stdout, stderr } = await seed('--users', '30', '--tokens', file, '--json')
    t.equal(code, 0, stderr)
    t.strictSame(JSON.parse(stdout), { users: 30, added: 9, tokens: 29, complete: true })
    t.equal(statSync(file).mode & 0o777, 0o600, 'for its owner alone')
    const tokens = tokensIn(file)
    t.equal(tokens.length, 30)
    t.equal(new Set(tokens).size, 30)
    for (const [index, token] of tokens.entries()) {
      const email = `user${index + 1}@seed.example`
      if (email === disabled.email) t.equal(token, '', 'an empty line for who is disabled')
      else t.equal(await emailOf(app, token), email, 'line N is user N')
    }
    t.equal((await signIn(app, 'user20@seed.example', 'another password')).statusCode, 200, 'as it was')
    t.equal((await signIn(app, 'user30@seed.example', 'seed password 1')).statusCode, 200)
    for (const output of [stdout, stderr, ...before.map((user: object) => JSON.stringify(user))])
      t.notMatch(output, JWT_SECRET)

    const users = await list()
    t.strictSame(
      users.map(({ email }: { email: string }) => email).sort(),
      Array.from({ length: 30 }, (_, index) => `user${index + 1}@seed.example`).sort(),
    )
    t.ok(users.some(({ id }: { id: string }) => id === otherUser))
    const seeded = users.filter(({ id }: { id: string }) => id !== otherUser)
    t.ok(new Set(seeded.map(({ createdAt }: { createdAt: string }) => createdAt)).size > 20, 'spread in time')
    t.ok(seeded.every(({ firstName, lastName }: Record<string, string>) => firstName && lastName))
    t.strictSame(
      seeded.map(({ id }: { id: string }) => id),
      seeded.map(({ id }: { id: string }) => id).sort(),
      'ids sort by the time of sign-up',
    )

    t.match(await seed('--users', '30', '--tokens', file), {
      code: 0,
      stdout: `0 users added, 30 already existed\n29 access tokens in ${file}\n`,
    })
    t.strictSame(tokensIn(file), tokens, 'the sessions that are in force, no others')
  }),
)

t.test('an expired session is replaced by a new one', t =>
  onEnginesOfRun(t, async (t, engine) => {
    const DATABASE_URL = await engine.emptyDatabase(t)
    const file = join(temporaryFolder(t), 'tokens')
    const env = { DATABASE_URL, JWT_SECRET, SESSION_IDLE: '1s' }
    const seed = () => runCommand(['seed', '--users', '3', '--tokens', file], env)
    t.match(await seed(), { code: 0 })
    const [old = '', ...others] = tokensIn(file)
    await sleep(1_100)
    t.match(await seed(), { code: 0, stdout: /^0 users added/ })
    const tokens = tokensIn(file)
    t.equal(tokens.length, 3)
    for (const token of [old, ...others]) t.notOk(tokens.includes(token))
    const app = await build(t, { env: { DATABASE_URL, JWT_SECRET }, realHashing: true })
    for (const token of tokens) t.equal(await accountStatus(app, token), 200)
  }),
)

t.test('production requires --force; an unwritable file is reported before users are added', async t => {
  const folder = temporaryFolder(t)
  const DATABASE_URL = `sqlite:${join(folder, 'test.db')}`
  const env = { DATABASE_URL, NODE_ENV: 'production' }
  const nowhere = await runCommand(
    ['seed', '--users', '2', '--force', '--tokens', join(folder, 'x', 'y')],
    env,
  )
  t.match(nowhere, { code: 1, stdout: '', stderr: /^--tokens names a file that cannot be written/ })
  const forced = await runCommand(['seed', '--users', '1', '--force'], env)
  t.match(forced, { code: 0, stdout: '1 user added, 0 already existed\n' })
})

t.test('Ctrl-C ends seed after the current users, kill -9 at once; the next run adds the rest', async t => {
  const DATABASE_URL = await createDatabase(t)
  await migrate(DATABASE_URL, schemaOf())
  const hold = await holdAt(DATABASE_URL, 'user7000@seed.example')
  const seed = () => runCli(['seed', '--users', '12000'], { DATABASE_URL })
  const added = async () => (await query(DATABASE_URL, 'SELECT count(*)::int AS users FROM users'))[0]?.users

  await hold.close()
  const killed = seed()
  await hold.arrival()
  killed.process.kill('SIGKILL')
  await killed.ended
  await hold.open()
  await hold.close()
  t.equal(await added(), 5_000, 'a slice is there whole or not at all')

  const stopped = seed()
  await hold.arrival()
  stopped.process.kill('SIGINT')
  while (!stopped.stderr().includes('Stopping')) await sleep(20)
  await hold.end()
  t.match(await stopped.ended, {
    code: 1,
    stdout: '5,000 users added, 5,000 already existed\n',
    stderr: /^Stopped before the end: run it again/m,
  })
  t.equal(await added(), 10_000)
  t.match(await seed().ended, { code: 0, stdout: '2,000 users added, 10,000 already existed\n' })
  t.equal(await added(), 12_000)
})
