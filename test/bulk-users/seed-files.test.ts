/** The files of `npm run cli -- seed` for load generators, and its repeatable accounts. */
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { asAdmin, bearer, build, JWT_SECRET, temporaryFolder, updateUser } from '../support/build.ts'
import { runCli, runCommand } from '../support/cli.ts'
import { onEnginesOfRun } from '../support/engines.ts'

const read = (file: string): string => readFileSync(file, 'utf8')

const accountOf = async (app: FastifyInstance, token: string) =>
  (await app.inject({ url: '/account', headers: bearer(token) })).json()

/** All users, in order of creation. */
const listUsers = async (app: FastifyInstance) =>
  (await app.inject({ url: '/admin/users?limit=100&sort=createdAt', headers: asAdmin })).json().results

/** Parses RFC 4180, with every quoted field. */
const parseCsv = (text: string): string[][] =>
  text
    .split(/\r\n(?=user|[0-9a-f]{8}-|,|$)/)
    .filter(line => line !== '')
    .map(line =>
      [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain]) =>
        quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'),
      ),
    )

await onEnginesOfRun(t, async (t, engine) => {
  t.test('jsonl and csv have the id, e-mail, password and token of each user', async t => {
    const DATABASE_URL = await engine.newDatabase(t)
    const folder = temporaryFolder(t)
    const env = { DATABASE_URL, JWT_SECRET }
    const app = await build(t, { env })
    const seed = (...args: string[]) => runCommand(['seed', ...args], env)
    t.match(await seed('--users', '4'), { code: 0 })
    const { id: second } = (await listUsers(app))[1]
    await updateUser(app, second, { disabled: true })

    const password = 'a "quoted", pass word'
    const jsonl = join(folder, 'users.jsonl')
    const files = ['--users', '6', '--password', password, '--tokens']
    t.match(await seed(...files, jsonl, '--format', 'jsonl'), {
      code: 0,
      stdout: `2 users added, 4 already existed\n5 access tokens in ${jsonl}\n`,
      stderr: /^1 user without a token, because they are disabled or were removed$/m,
    })
    const accounts = read(jsonl)
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
    t.equal(accounts.length, 6)
    for (const [index, account] of accounts.entries()) {
      t.strictSame(Object.keys(account), ['id', 'email', 'password', 'token'])
      t.equal(account.email, `user${index + 1}@seed.example`)
      t.equal(account.password, index < 4 ? null : password, 'null where the account has another password')
      if (index === 1) t.match(account, { id: second, token: null }, 'disabled')
      else t.match(await accountOf(app, account.token), { id: account.id, email: account.email })
    }

    const csv = join(folder, 'users.csv')
    t.match(await seed(...files, csv, '--format', 'csv'), { code: 0 })
    t.ok(read(csv).startsWith('id,email,password,token\r\n'))
    t.ok(read(csv).includes('"a ""quoted"", pass word"'))
    t.strictSame(parseCsv(read(csv)), [
      ['id', 'email', 'password', 'token'],
      ...accounts.map(account => [account.id, account.email, account.password ?? '', account.token ?? '']),
    ])
  })

  t.test('vegeta: one target a line, at --url or PUBLIC_URL', async t => {
    const DATABASE_URL = await engine.newDatabase(t)
    const file = join(temporaryFolder(t), 'targets.json')
    const env = { DATABASE_URL, JWT_SECRET, PUBLIC_URL: 'https://accounts.test/auth' }
    const targets = async (...args: string[]) => {
      const given = ['seed', '--users', '2', '--tokens', file, '--format', 'vegeta', ...args]
      t.match(await runCommand(given, env), { code: 0 })
      return read(file)
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line))
    }
    const app = await build(t, { env: { DATABASE_URL, JWT_SECRET } })
    const found = await targets()
    for (const [index, { method, url, header }] of found.entries()) {
      t.strictSame([method, url], ['GET', 'https://accounts.test/auth/account'])
      const [authorization = ''] = header.Authorization
      const account = await accountOf(app, authorization.replace('Bearer ', ''))
      t.equal(account.email, `user${index + 1}@seed.example`)
    }
    t.match(await targets('--url', 'http://10.0.0.1:3000/'), [{ url: 'http://10.0.0.1:3000/account' }, {}])
  })

  t.test('--shards deals the users out to several files', async t => {
    const DATABASE_URL = await engine.newDatabase(t)
    const folder = temporaryFolder(t)
    const file = join(folder, 'tokens.txt')
    const env = { DATABASE_URL, JWT_SECRET }
    const seed = (...args: string[]) => runCommand(['seed', '--tokens', file, ...args], env)
    t.match(await seed('--users', '8', '--shards', '3'), {
      code: 0,
      stdout: `8 users added, 0 already existed\n8 access tokens in 3 files, ${join(folder, 'tokens.1.txt')} to ${join(folder, 'tokens.3.txt')}\n`,
    })
    t.strictSame(readdirSync(folder).sort(), ['tokens.1.txt', 'tokens.2.txt', 'tokens.3.txt'])
    t.match(await seed('--users', '8'), { code: 0 })
    const tokens = read(file).trimEnd().split('\n')
    for (const shard of [1, 2, 3]) {
      const path = join(folder, `tokens.${shard}.txt`)
      t.equal(statSync(path).mode & 0o777, 0o600)
      t.strictSame(
        read(path).trimEnd().split('\n'),
        tokens.filter((_token, index) => index % 3 === shard - 1),
        'user N is in file ((N - 1) mod 3) + 1',
      )
    }
  })

  t.test('--random-seed: the same ids, dates and names in every database', async t => {
    const seeded = async (...args: string[]) => {
      const DATABASE_URL = await engine.newDatabase(t)
      const env = { DATABASE_URL, JWT_SECRET }
      t.match(await runCommand(['seed', '--users', '7', ...args], env), { code: 0 })
      return listUsers(await build(t, { env }))
    }
    const one = await seeded('--random-seed', '42')
    t.strictSame(await seeded('--random-seed', '42'), one)
    t.ok(one.every(({ createdAt }: { createdAt: string }) => createdAt <= '2026-01-01T00:00:00.000Z'))
    t.strictSame(
      one.map(({ id }: { id: string }) => id),
      one.map(({ id }: { id: string }) => id).sort(),
      'ids sort by the time of sign-up',
    )
    const other = await seeded('--random-seed', '43')
    const unseeded = await seeded()
    for (const [index, { id }] of one.entries())
      for (const users of [other, unseeded]) t.not(users[index].id, id, 'another seed, or none')
  })
})

t.test('a file is replaced as a whole or not at all', async t => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'tokens')
  const env = { DATABASE_URL: `sqlite:${join(folder, 'test.db')}` }
  writeFileSync(file, 'of an earlier run')
  const run = runCli(['seed', '--users', '20000', '--tokens', file], env)
  while (!run.stderr().includes('5,000 of')) await new Promise(resolve => setTimeout(resolve, 5))
  t.equal(read(file), 'of an earlier run', 'while it runs')
  run.process.kill('SIGINT')
  const { code, stdout } = await run.ended
  if (code === 1) {
    t.equal(read(file), 'of an earlier run', 'after a stop')
    t.notMatch(stdout, /access token/)
  }
  t.match(await runCommand(['seed', '--users', '20000', '--tokens', file], env), { code: 0 })
  t.equal(read(file).trimEnd().split('\n').length, 20_000)
  t.notOk(readdirSync(folder).some(name => name.endsWith('.partial')))

  const link = join(folder, 'link')
  symlinkSync(file, link)
  t.match(await runCommand(['seed', '--users', '1', '--tokens', link], env), {
    code: 1,
    stderr: `--tokens names a path that is not a regular file: ${link}\n`,
  })
})
