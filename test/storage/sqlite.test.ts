/** SQLite storage: the contract of every engine, then properties of the file. */
import { randomBytes } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import t from 'tap'
import { ERRORS } from '#base/errors'
import { schemaOf } from '#core/store/migrations'
import { openSqliteStorage } from '#core/store/sqlite'
import { migrate } from '#storage/sqlite/migrate'
import { Reader } from '#storage/sqlite/reader'
import { temporaryFolder } from '../support/build.ts'
import { add, eventOf, NOW, sessionOf, userRequests, verifiedBy } from './contract/fixtures.ts'
import { storageContract } from './contract.ts'
import { worksBesidePreviousRelease } from './previous-release.ts'
import { connect, fileOf, open } from './sqlite-support.ts'

await storageContract(t, 'sqlite', open)

t.test('sqlite: commits are durable (WAL, synchronous=FULL) and references are enforced', async t => {
  // For a file that is in WAL mode already, the library's default is NORMAL.
  await open(t)
  const db = connect(t)
  t.equal(db.pragma('journal_mode', { simple: true }), 'wal')
  t.equal(db.pragma('synchronous', { simple: true }), 2)
  t.equal(db.pragma('foreign_keys', { simple: true }), 1)
})

t.test('sqlite: a missing file and its folder are created, readable only by their owner', async t => {
  const file = fileOf(t)
  const storage = await openSqliteStorage(file)
  t.teardown(() => storage.close())
  t.equal(statSync(join(file, '..')).mode & 0o777, 0o700)
  t.equal(statSync(file).mode & 0o777, 0o600)
})

t.test('sqlite: a repeated migration changes nothing', async t => {
  const storage = await open(t)
  await add(storage)
  const db = connect(t)
  const content = () => [
    db.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY name').all(),
    db.prepare('SELECT * FROM kysely_migration').all(),
    db.prepare('SELECT * FROM users').all(),
  ]
  const before = content()
  await migrate(fileOf(t), schemaOf())
  await migrate(fileOf(t), schemaOf())
  t.strictSame(content(), before)
})

t.test('sqlite: an instance of the previous release writes to the migrated file', async t => {
  const storage = await open(t)
  const db = connect(t)
  await worksBesidePreviousRelease(t, storage, text => db.exec(text))
})

t.test('sqlite: a file that is not a database is rejected and left unchanged', async t => {
  const folder = temporaryFolder(t)
  for (const bytes of [randomBytes(8_192), Buffer.from('not a database, but a letter')]) {
    const file = join(folder, `${bytes.length}.db`)
    writeFileSync(file, bytes)
    await t.rejects(openSqliteStorage(file), { message: /not a database/ })
    t.strictSame(readFileSync(file), bytes)
  }
})

t.test('D10: sqlite: a file in UTF-16 is refused, and errors of data are no outage', async t => {
  const file = join(temporaryFolder(t), 'utf16.db')
  const other = new Database(file)
  other.exec(`PRAGMA encoding = 'UTF-16le'; CREATE TABLE notes (text)`)
  other.close()
  await t.rejects(openSqliteStorage(file), {
    message: /utf16\.db: its encoding is UTF-16le: name another file/,
  })

  const storage = await open(t)
  const { user } = await add(storage)
  const db = connect(t)
  db.exec(`CREATE TRIGGER fail BEFORE UPDATE ON users BEGIN SELECT RAISE(ABORT, 'canary'); END`)
  const update = () => storage.accounts.rehash(user.id, user.passwordHash, 'stronger')
  await t.rejects(update(), { code: 'internalError', message: ERRORS.internalError.message })
  db.exec('DROP TRIGGER fail')
  await t.resolves(update())

  const reader = new Reader(fileOf(t))
  for (const [sql, ...values] of [
    ['SELECT nothing'],
    ['SELECT ?'],
    ['SELECT ?', 1, 2],
    ["SELECT abs('x', 1)"],
  ])
    t.throws(() => reader.get(String(sql), ...values), { code: 'internalError' }, String(sql))
  reader.close()
  t.throws(() => reader.get('SELECT 1'), { code: 'storeUnavailable' }, 'a store that is closed')
})

t.test('sqlite: 2,000 mixed concurrent writes leave the file intact', async t => {
  const storage = await open(t)
  const users = await Promise.all(Array.from({ length: 500 }, () => add(storage)))
  const writes = users.flatMap(({ user, session, userKey }, index) => [
    storage.users.update(user.id, { firstName: `${index}` }, eventOf(user.id, NOW), {
      revokeSessions: index % 5 === 0,
      invalidateTokens: false,
      credentialId: null,
      versions: null,
    }),
    storage.sessions.open(
      sessionOf(user.id),
      verifiedBy(user.passwordHash),
      eventOf(sessionOf(user.id).userId),
    ),
    storage.lastRequests.recordLastRequests(userRequests([{ key: userKey, at: NOW }]), [
      { id: session.id, at: NOW },
    ]),
    storage.accounts.rehash(user.id, user.passwordHash, 'stronger'),
  ])
  await Promise.all(writes)
  const db = connect(t)
  t.equal(db.pragma('integrity_check', { simple: true }), 'ok')
  t.strictSame(db.pragma('foreign_key_check'), [])
  t.equal(await storage.users.count({}), 500)
  t.equal(db.prepare('SELECT count(*) FROM sessions').pluck().get(), 900)
  t.equal(db.prepare("SELECT count(*) FROM users WHERE password_hash = 'stronger'").pluck().get(), 500)
})

t.test('sqlite: more query shapes than the cache holds still work', async t => {
  await open(t)
  const reader = new Reader(fileOf(t))
  t.teardown(() => reader.close())
  const numbers = Array.from({ length: 1_200 }, (_, number) => number)
  for (const round of ['first', 'again']) {
    const responses = numbers.map(number => reader.get<{ n: number }>(`SELECT ${number} AS n`)?.n)
    t.strictSame(responses, numbers, round)
  }
})
