/** `npm run cli -- copy` as a process: interruption and errors (docs/design.md, "Storage"). */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { migrate as migrateTarget } from '#storage/postgres/migrate'
import { createDatabaseFile, openDatabase } from '#storage/sqlite/database'
import { temporaryFolder } from '../support/build.ts'
import { runCommand } from '../support/cli.ts'
import { copyHere, makeSource, runCopy, sourceContent, targetContent } from '../support/copy-runs.ts'
import { createDatabase, holdAt, newDatabase, query } from '../support/postgres.ts'

t.test('after kill -9 or Ctrl-C another run copies the rest', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  const url = await newDatabase(t)
  await makeSource(file, 5_000)
  await migrateTarget(url)
  const hold = await holdAt(url, 'user2500@example.com')
  const copied = async () => (await query(url, 'SELECT count(*)::int AS users FROM users'))[0]?.users

  await hold.close()
  const killed = runCopy(file, url)
  await hold.arrival()
  killed.process.kill('SIGKILL')
  await killed.ended
  await hold.open()
  await hold.close()
  t.equal(await copied(), 2_000, 'a slice is there whole or not at all')

  const stopped = runCopy(file, url)
  await hold.arrival()
  stopped.process.kill('SIGINT')
  while (!stopped.stderr().includes('Stopping')) await sleep(20)
  await hold.end()
  const { code, stdout, stderr } = await stopped.ended
  t.equal(code, 1)
  t.match(stderr, /^Stopping after .*$/m)
  t.match(stderr, /^Stopped before the end: run it again.*\n$/m)
  t.match(stdout, /^5,000 users in the source:\n {2}2,000 +copied\n/)
  t.equal(await copied(), 4_000, 'the slice in progress was stored')

  const last = await runCopy(file, url).ended
  t.equal(last.code, 0)
  t.match(last.stdout, /^ {2}1,000 +copied\n.*\n {2}4,000 +unchanged$/m)
  t.strictSame(await targetContent(url), sourceContent(file))
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
  await makeSource(path('old.db'), 1)
  const old = openDatabase(path('old.db'), 1_000)
  old.exec('DELETE FROM kysely_migration')
  old.close()
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
    [path('text.db'), to, /^the source: .*file is not a database/],
    [path('other.db'), to, /is not a database of this service$/],
    [path('old.db'), to, /was left by another version/],
    [path('good.db'), unreachable, /^the target: .*ECONNREFUSED/],
  ]
  for (const [file, url, message] of rejections) await t.rejects(copyHere(file, url), { message })

  const cases: [string[], number, RegExp][] = [
    [pair(`sqlite:${missing}`, to), 1, /^Nothing was copied: .*there is no file .*gatehouse\.db/],
    [pair(to, from), 2, /^A copy is possible only from SQLite to PostgreSQL/],
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
