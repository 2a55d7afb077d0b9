/**
 * The database file must be the one at its path: otherwise nothing is read, written or acknowledged (docs/design.md, "Failures and hostile
 * input").
 */
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import Database from 'better-sqlite3'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { openSqliteStorage } from '#core/store/sqlite'
import { DatabaseFileHandle } from '#storage/sqlite/database-file'
import { asAdmin, bearer, build, logCapture, signUp, temporaryFolder } from '../support/build.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { until } from '../support/until.ts'
import { add, eventOf } from './contract/fixtures.ts'
import { startWriter } from './sqlite-support.ts'

// Most of the time passes in stops that wait for a store that never recovers.
t.jobs = 6

/**
 * Milliseconds within which a lost file is noticed (docs/design.md, "Failures and hostile input"), and until a condition counts as failed.
 */
const NOTICED = 1_000
const DEADLINE = 10_000

const overwrite = (file: string, bytes: number): void => {
  const fd = openSync(file, 'r+')
  writeSync(fd, Buffer.alloc(bytes, 0x5a), 0, bytes, 0)
  closeSync(fd)
}

/** A copy like one of `sqlite3 .backup`, in WAL mode like the service's own. */
const anotherDatabase = async (file: string): Promise<void> => {
  const storage = await openSqliteStorage(file)
  await storage.close()
}

interface Fault {
  readonly name: string
  /** What happens to the database file; `spare` is another database, `copy` the file before the last writes. */
  readonly make: (file: string, others: { spare: string; copy: string }) => void
  /** Restores the file without a restart. */
  readonly repair?: (file: string) => void
  /** The message in the log. */
  readonly says: RegExp
}

const asidePath = (file: string): string => `${file}.aside`
const moved = (suffix = '') => ({
  make: (file: string) => renameSync(file + suffix, asidePath(file)),
  repair: (file: string) => renameSync(asidePath(file), file + suffix),
  says: /is missing/,
})
const replaced = (suffix = '') => ({
  make: (file: string, { spare }: { spare: string }) => {
    renameSync(file + suffix, asidePath(file))
    renameSync(spare, file + suffix)
  },
  repair: (file: string) => renameSync(asidePath(file), file + suffix),
  says: /has been replaced by another file/,
})

const FAULTS: readonly Fault[] = [
  { name: 'deleted', make: file => unlinkSync(file), says: /is missing/ },
  { name: 'moved away', ...moved() },
  { name: 'replaced by another database', ...replaced() },
  {
    name: 'replaced by a link',
    make: (file, { spare }) => {
      renameSync(file, asidePath(file))
      symlinkSync(spare, file)
    },
    repair: file => {
      unlinkSync(file)
      renameSync(asidePath(file), file)
    },
    says: /has been replaced by another file/,
  },
  {
    name: 'overwritten with another database',
    make: (file, { spare }) => copyFileSync(spare, file),
    says: /has been overwritten/,
  },
  {
    name: 'overwritten with a copy of its own',
    make: (file, { copy }) => copyFileSync(copy, file),
    says: /has been overwritten/,
  },
  { name: 'its magic overwritten', make: file => overwrite(file, 16), says: /has been overwritten/ },
  { name: 'its header overwritten', make: file => overwrite(file, 100), says: /has been overwritten/ },
  { name: 'emptied', make: file => truncateSync(file), says: /has been overwritten/ },
  { name: 'cut short', make: file => truncateSync(file, 8_192), says: /has been overwritten/ },
  { name: 'the log deleted', make: file => unlinkSync(`${file}-wal`), says: /-wal is missing/ },
  { name: 'the log moved away', ...moved('-wal') },
  { name: 'the log replaced', ...replaced('-wal') },
  { name: 'the log emptied', make: file => truncateSync(`${file}-wal`), says: /-wal has been overwritten/ },
  {
    name: 'the log overwritten',
    make: file => overwrite(`${file}-wal`, 32),
    says: /-wal has been overwritten/,
  },
  { name: 'the index deleted', make: file => unlinkSync(`${file}-shm`), says: /-shm is missing/ },
  { name: 'the index replaced', ...replaced('-shm') },
  {
    name: 'its folder moved',
    make: file => renameSync(dirname(file), `${dirname(file)}-aside`),
    repair: file => renameSync(`${dirname(file)}-aside`, dirname(file)),
    says: /is missing/,
  },
]

const rename = (app: FastifyInstance, token: string, firstName: string) =>
  app.inject({ method: 'PUT', url: '/account', headers: bearer(token), payload: { firstName } })

const ready = async (app: FastifyInstance): Promise<number> =>
  (await app.inject({ url: '/ready' })).statusCode

const setUp = async (t: Test) => {
  const folder = join(temporaryFolder(t), 'store')
  mkdirSync(folder)
  const file = join(folder, 'test.db')
  const log = logCapture()
  const app = await build(t, { env: { DATABASE_URL: `sqlite:${file}` }, logStream: log.stream })
  const errors = () =>
    log.records().filter(({ level, msg }) => level === 50 && /database file/.test(String(msg)))
  return { folder, file, app, log, errors }
}

/** Checkpoints the log into the database, as enough writes do. */
const fillLog = async (app: FastifyInstance, token: string, file: string): Promise<void> => {
  const before = statSync(file, { bigint: true }).mtimeNs
  let changes = 0
  // Each to another name: a change that changes nothing writes nothing.
  await until(
    () => {
      changes += 1
      return rename(app, token, String(changes).padStart(128, 'x'))
    },
    () => statSync(file, { bigint: true }).mtimeNs !== before,
    600_000,
  )
}

for (const { name, make, repair, says } of FAULTS)
  t.test(`sqlite file: ${name}: nothing is acknowledged, all is 503 within a second`, async t => {
    const { folder, file, app, log, errors } = await setUp(t)
    const spare = join(folder, '..', 'spare.db')
    const copy = join(folder, '..', 'copy.db')
    await anotherDatabase(spare)
    const { token } = await signUp(app)
    if (name.includes('copy')) {
      await fillLog(app, token, file)
      copyFileSync(file, copy)
      await fillLog(app, token, file)
    }
    t.equal((await rename(app, token, 'Ada')).statusCode, 200)

    make(file, { spare, copy })
    const responses = await Promise.all(Array.from({ length: 5 }, (_, n) => rename(app, token, `Late ${n}`)))
    t.strictSame(
      responses.map(({ statusCode }) => statusCode),
      /index/.test(name) ? responses.map(({ statusCode }) => statusCode) : [503, 503, 503, 503, 503],
      'no write is acknowledged',
    )
    t.equal(
      await until(
        () => ready(app),
        status => status === 503,
        NOTICED,
      ),
      503,
      '/ready',
    )
    const warm = await app.inject({ url: '/account', headers: bearer(token) })
    globalErrorOf(t, warm, 503, 'a cached token')
    t.equal(warm.headers['retry-after'], '1')
    globalErrorOf(t, await app.inject({ url: '/admin/users', headers: asAdmin }), 503, 'reads')
    globalErrorOf(t, await rename(app, token, 'Later'), 503, 'writes')
    t.equal((await app.inject({ url: '/health' })).statusCode, 200, '/health')
    // Reads may have failed before the file was checked.
    await until(errors, ({ length }) => length > 0, NOTICED)
    t.match(errors(), [{ msg: says }], 'logged once')
    t.match(errors()[0]?.msg, file)

    if (repair === undefined) {
      t.equal(await ready(app), 503, 'and so it stays')
      return
    }
    repair(file)
    t.equal(
      await until(
        () => ready(app),
        status => status === 200,
        DEADLINE,
      ),
      200,
      'goes on by itself',
    )
    t.equal((await rename(app, token, 'Grace')).json().firstName, 'Grace')
    t.match(
      log.records().filter(({ msg }) => /in place again/.test(String(msg))),
      [{ level: 30 }],
    )
    t.equal(errors().length, 1)
  })

t.test('sqlite file: a symbolic link and a relative path are accepted', async t => {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'real'))
  symlinkSync(join(folder, 'real'), join(folder, 'linked-folder'))
  symlinkSync(join(folder, 'real', 'test.db'), join(folder, 'linked.db'))
  const paths = ['real/test.db', 'linked.db', 'linked-folder/test.db']
  let token: string | undefined
  for (const path of paths) {
    const url = `sqlite:${relative(process.cwd(), join(folder, path))}`
    const app = await build(t, { env: { DATABASE_URL: url } })
    token ??= (await signUp(app)).token
    t.equal((await rename(app, token, path)).statusCode, 200, path)
    // Long enough for both watches.
    await new Promise(resolve => setTimeout(resolve, 600))
    t.equal(await ready(app), 200, path)
    await app.close()
  }
})

t.test('sqlite file: acknowledged writes of a removed log are in the database', async t => {
  for (const what of ['the log deleted', 'moved away', 'its folder moved'] as const) {
    const { file, app } = await setUp(t)
    const { token } = await signUp(app)
    for (let n = 0; n < 20; n += 1) t.equal((await rename(app, token, `Name ${n}`)).statusCode, 200)
    FAULTS.find(({ name }) => name === what)?.make(file, { spare: '', copy: '' })
    const places = [file, asidePath(file), join(`${dirname(file)}-aside`, 'test.db')]
    const place = places.find(place => existsSync(place)) ?? ''
    const alone = join(temporaryFolder(t), 'alone.db')
    const nameIn = () => {
      // The database file alone, as a restart without the log would find it.
      copyFileSync(place, alone)
      const db = new Database(alone)
      try {
        return db.prepare('SELECT first_name FROM users').pluck().get()
      } catch {
        return null
      } finally {
        db.close()
      }
    }
    t.equal(await until(nameIn, name => name === 'Name 19', DEADLINE), 'Name 19', what)
  }
})

t.test('sqlite file: checkpoints and writes by other processes are not a replacement', async t => {
  const { file, app, errors } = await setUp(t)
  const { token } = await signUp(app)
  const elsewhere = (sql: string) =>
    execFileSync(process.execPath, [
      '-e',
      `const db = new (require('better-sqlite3'))(process.argv[1]); db.exec(process.argv[2]); db.close()`,
      file,
      sql,
    ])
  const rows = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i, hex(randomblob(100)) FROM n`
  for (const sql of [
    'SELECT count(*) FROM users',
    "UPDATE users SET last_name = 'Elsewhere'",
    `CREATE TABLE filler AS ${rows}; PRAGMA wal_checkpoint(TRUNCATE)`,
    'DROP TABLE filler',
    'PRAGMA wal_checkpoint(RESTART)',
    'VACUUM',
    'PRAGMA wal_checkpoint(TRUNCATE)',
  ]) {
    elsewhere(sql)
    for (let n = 0; n < 3; n += 1) t.equal((await rename(app, token, `Name ${n}`)).statusCode, 200, sql)
    t.equal(await ready(app), 200, sql)
  }
  t.strictSame(errors(), [])
})

t.test('sqlite file: a log of another database is rejected at the start', async t => {
  const folder = temporaryFolder(t)
  const [file, spare] = [join(folder, 'test.db'), join(folder, 'spare.db')]
  await anotherDatabase(spare)
  const app = await build(t, { env: { DATABASE_URL: `sqlite:${file}` } })
  const { token } = await signUp(app)
  t.equal((await rename(app, token, 'Ada')).statusCode, 200)
  // As a killed process leaves them.
  const left = join(folder, 'left.db')
  for (const suffix of ['', '-wal']) copyFileSync(file + suffix, left + suffix)
  const same = await openSqliteStorage(left)
  t.equal(await same.users.count({}), 1, 'its own is taken')
  await same.close()

  for (const suffix of ['', '-wal']) copyFileSync(file + suffix, left + suffix)
  copyFileSync(spare, left)
  await t.rejects(openSqliteStorage(left), {
    message: /left\.db-wal belongs to another database/,
    code: 'FOREIGN_LOG',
  })
  unlinkSync(left)
  await t.rejects(openSqliteStorage(left), { message: /left\.db is missing/, code: 'FOREIGN_LOG' })
  t.notOk(existsSync(left))
  rmSync(`${left}-wal`)
  writeFileSync(`${left}-wal`, '')
  const empty = await openSqliteStorage(left)
  t.equal(await empty.users.count({}), 0)
  await empty.close()
})

t.test('sqlite file: a commit whose check fails is not acknowledged, and evicts what it changed', async t => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'test.db')
  const storage = await openSqliteStorage(file)
  const { user, session } = await add(storage)
  const handle = new DatabaseFileHandle(file)
  // Reads of a folder fail, as those of a failing disk do.
  const folderFd = openSync(folder, 'r')
  const { writer, deliverInvalidations, invalidations, close } = startWriter({
    ...handle.openFiles(),
    walFd: folderFd,
  })
  t.teardown(async () => {
    await close()
    await storage.close()
    handle.release()
    closeSync(folderFd)
  })
  await until(
    () => {
      deliverInvalidations()
      return invalidations.length
    },
    count => count === 1,
    DEADLINE,
  )
  await t.rejects(writer.run('sessions:revoke', [session.id, eventOf(user.id)]), {
    name: 'ServiceError',
    cause: { code: 'EISDIR' },
  })
  t.equal(storage.sessions.find(session.id), undefined, 'it was committed')
  t.strictSame(invalidations, ['all', 'all'])
})
