/** `npm run cli -- copy` as a process: output, interruption and errors (docs/design.md, "Storage"). */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { schemaOf } from '#core/store/migrations'
import { allFeatures } from '#features/built-in'
import { migrate as migrateTarget } from '#storage/postgres/migrate'
import { createDatabaseFile, openDatabase } from '#storage/sqlite/database'
import { build, temporaryFolder } from '../support/build.ts'
import { runCli, runCommand } from '../support/cli.ts'
import { contentOf, copyStore, makeSource } from '../support/copies.ts'
import { createDatabase, holdAt, query } from '../support/postgres.ts'

const runCopy = (from: string, to: string) => runCli(['copy', '--from', from, '--to', to])

const digest = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex')

t.test('after kill -9 or Ctrl-C the target is empty, and another run copies everything', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  const url = await createDatabase(t)
  await makeSource(file, 2_000)
  const bytes = digest(file)
  await migrateTarget(url, schemaOf(allFeatures()))
  const hold = await holdAt(url, 'user1200@example.com')
  const users = async () => (await query(url, 'SELECT count(*)::int AS users FROM users'))[0]?.users

  await hold.close()
  const killed = runCopy(`sqlite:${file}`, url)
  await hold.arrival()
  killed.process.kill('SIGKILL')
  await killed.ended
  await hold.open()
  await hold.close()
  t.equal(await users(), 0)

  const stopped = runCopy(`sqlite:${file}`, url)
  await hold.arrival()
  stopped.process.kill('SIGINT')
  while (!stopped.stderr().includes('Stopping')) await sleep(20)
  await hold.end()
  const { code, stdout, stderr } = await stopped.ended
  t.equal(code, 1)
  t.match(stderr, /^Stopped: nothing was copied\n$/m)
  t.equal(stdout, '')
  t.equal(await users(), 0)

  const last = await runCopy(`sqlite:${file}`, url).ended
  t.equal(last.code, 0, last.stderr)
  t.match(last.stdout, /^Copied rows:\n {2}2,000 +users\n/)
  t.match(last.stderr, /^4,000 of 4,000 rows$/m)
  t.strictSame(await contentOf(url), await contentOf(`sqlite:${file}`))
  t.equal(digest(file), bytes, 'the source is as it was')
})

t.test('the same into a file', async t => {
  const [file, copied] = [join(temporaryFolder(t), 'test.db'), join(temporaryFolder(t), 'copy.db')]
  await makeSource(file, 60_000)
  const killed = runCopy(`sqlite:${file}`, `sqlite:${copied}`)
  while (!/ rows$/m.test(killed.stderr())) await sleep(5)
  killed.process.kill('SIGKILL')
  await killed.ended
  t.equal((await contentOf(`sqlite:${copied}`)).users?.length, 0)
  t.equal((await runCopy(`sqlite:${file}`, `sqlite:${copied}`).ended).code, 0)
  t.strictSame(await contentOf(`sqlite:${copied}`), await contentOf(`sqlite:${file}`))
})

t.test('generated keys are named, and no secret is shown', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  const url = await createDatabase(t)
  const app = await build(t, { env: { DATABASE_URL: `sqlite:${file}`, JWT_SECRET: '' } })
  await app.close()
  const { code, stdout, stderr } = await runCopy(`sqlite:${file}`, url).ended
  t.equal(code, 0, stderr)
  t.match(stdout, `The secret that the service generated is in ${file}.jwt-secret\n`)
  t.match(stdout, `The encryption key that the service generated is in ${file}.encryption-key\n`)
  t.notMatch(stdout + stderr, new URL(url).password)
  t.notMatch(stdout + stderr, readFileSync(`${file}.jwt-secret`, 'utf8').trim())
})

t.test('errors are one sentence without a password, and nothing is created', async t => {
  const folder = temporaryFolder(t)
  const path = (name: string) => join(folder, name)
  await makeSource(path('good.db'), 1)
  writeFileSync(path('text.db'), 'no database '.repeat(1_000))
  createDatabaseFile(path('other.db'))
  const other = openDatabase(path('other.db'), 1_000)
  other.exec('CREATE TABLE users (id text)')
  other.close()
  const target = new URL(await createDatabase(t))
  const altered = (change: (url: URL) => void): string => {
    const url = new URL(target)
    change(url)
    return url.href
  }
  const [from, to] = [`sqlite:${path('good.db')}`, target.href]
  const wrongPassword = altered(url => {
    url.password = 'canary-password'
  })
  const unreachable = altered(url => {
    url.port = '1'
  })
  const missing = path(join('missing', 'gatehouse.db'))
  const pair = (from: string, to: string) => ['copy', '--from', from, '--to', to]

  const rejections: [string, string, RegExp][] = [
    [`sqlite:${path('text.db')}`, to, /^the source: .*file is not a database/],
    [`sqlite:${path('other.db')}`, to, /^the source: it is no database of this version of the service/],
    [from, unreachable, /^the target: .*ECONNREFUSED/],
    [unreachable, from, /^the source: .*ECONNREFUSED/],
    [to, `sqlite:${missing}`, /^the source: it is no database of this version of the service/],
  ]
  for (const [from, to, message] of rejections) await t.rejects(copyStore(from, to), { message })

  const cases: [string[], number, RegExp][] = [
    [pair(`sqlite:${missing}`, to), 1, /^Nothing was copied: .*there is no file .*gatehouse\.db/],
    [pair(to, to), 2, /^--from and --to are the same database$/m],
    [pair('mysql://root:canary-password@localhost/x', to), 2, /^--from must be sqlite:/],
    [pair(from, 'postgres://user:canary-password@host:port/x'), 2, /^--to must be sqlite:.* or postgres:/],
    [pair(from, wrongPassword), 1, /^Nothing was copied: the target: password authentication failed/],
    [[...pair(from, to), 'postgres://user:canary-password@host/x'], 2, /too many arguments/],
    [[...pair(from, to), '--too=postgres://user:canary-password@host/x'], 2, /unknown option/],
    [['copy', '--from', from], 2, /'--to <url>' not specified/],
    [['move'], 2, /unknown command 'move'/],
  ]
  for (const [args, exitCode, sentence] of cases) {
    const { code, stdout, stderr } = await runCommand(args)
    t.equal(code, exitCode, sentence.source)
    t.match(stderr, sentence)
    t.match(stderr, /^[^\n]+\n$/, `one line: ${sentence.source}`)
    t.equal(stdout, '')
    t.notMatch(stderr, /canary/)
    t.notMatch(stderr, target.password)
  }
  t.notOk(existsSync(path('missing')))
  t.strictSame(await query(to, `SELECT to_regclass('users') AS users`), [{ users: null }])
})
