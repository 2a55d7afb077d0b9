/** `npm run cli -- copy` as a process: how it is interrupted, and what it refuses (DESIGN §7). */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import { migrate as migrateTarget } from '../src/storage/postgres/migrate.ts'
import { openDatabase } from '../src/storage/sqlite/database.ts'
import { temporaryFolder } from './support/build.ts'
import { copyHere, makeSource, runCli, runCopy, sourceContent, targetContent } from './support/copy.ts'
import { createDatabase, query } from './support/postgres.ts'

t.setTimeout(120_000)

/** Holds every copy that comes to one user, in the middle of a slice. */
const holdAt = async (url: string, email: string) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$;
    CREATE TRIGGER hold BEFORE INSERT ON users FOR EACH ROW WHEN (NEW.email = '${email}') EXECUTE FUNCTION hold()`)
  const waiting = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`
  return {
    close: () => client.query('SELECT pg_advisory_lock(1)'),
    async arrival(): Promise<void> {
      while ((await client.query(waiting)).rows.length === 0) await sleep(20)
    },
    open: () => client.query('SELECT pg_advisory_unlock(1)'),
    end: () => client.end(),
  }
}

t.test('after kill -9, and after Ctrl-C, another run copies what is missing', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  const url = await createDatabase(t)
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
  t.match(stdout, '5,000 users in the source: 2,000 copied')
  t.equal(await copied(), 4_000, 'the slice that was under way is there')

  const last = await runCopy(file, url).ended
  t.equal(last.code, 0)
  t.match(last.stdout, /5,000 users in the source: 1,000 copied, .* 4,000 unchanged/)
  t.strictSame(await targetContent(url), sourceContent(file))
})

t.test('what is wrong is said in one sentence, without a password, and nothing is created', async t => {
  const folder = temporaryFolder(t)
  const path = (name: string) => join(folder, name)
  await makeSource(path('good.db'), 1)
  writeFileSync(path('text.db'), 'no database '.repeat(1_000))
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

  const refusals: [string, string, RegExp][] = [
    [path('text.db'), to, /^the source: .*file is not a database/],
    [path('other.db'), to, /is not a database of this service$/],
    [path('old.db'), to, /was left by another version/],
    [path('good.db'), unreachable, /^the target: .*ECONNREFUSED/],
  ]
  for (const [file, url, message] of refusals) await t.rejects(copyHere(file, url), { message })

  const cases: [string[], RegExp][] = [
    [pair(`sqlite:${missing}`, to), /there is no file .*gatehouse\.db/],
    [pair(to, from), /only from SQLite to PostgreSQL/],
    [pair('mysql://root:canary-password@localhost/x', to), /--from must be sqlite:/],
    [pair(from, 'postgres://user:canary-password@host:port/x'), /--to must be sqlite:.* or postgres:/],
    [pair(from, wrongPassword), /the target: password authentication failed/],
    [[...pair(from, to), 'postgres://user:canary-password@host/x'], /too many arguments/],
    [[...pair(from, to), '--too=postgres://user:canary-password@host/x'], /unknown option/],
    [['copy', '--from', from], /'--to <url>' not specified/],
    [['move'], /unknown command 'move'/],
  ]
  for (const [args, sentence] of cases) {
    const { code, stdout, stderr } = await runCli(...args).ended
    t.equal(code, 1, sentence.source)
    t.match(stderr, sentence)
    t.match(stderr, /^[^\n]+\n$/, `one line: ${sentence.source}`)
    t.equal(stdout, '')
    t.notMatch(stderr, /canary/)
    t.notMatch(stderr, target.password)
  }
  t.notOk(existsSync(path('missing')))
  t.strictSame(await query(to, `SELECT to_regclass('users') AS users`), [{ users: null }])
})
