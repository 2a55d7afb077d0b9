/** SQLite with other processes that open the same file, change it and lock it. */
import { execFile } from 'node:child_process'
import { renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { ERRORS } from '#base/errors'
import { DatabaseFileHandle } from '#storage/sqlite/database-file'
import { temporaryFolder } from '../support/build.ts'
import { until } from '../support/until.ts'
import { add, eventOf, NOW, newUser, onChange, sessionOf } from './contract/fixtures.ts'
import { connect, fileOf, open, startWriter } from './sqlite-support.ts'

const UNAVAILABLE = { message: ERRORS.storeUnavailable.message }

/** Opens and closes the store in a separate process. */
const openElsewhere = (t: Test) => {
  const program = join(temporaryFolder(t), 'open.ts')
  const module = new URL('../../src/core/store/sqlite.ts', import.meta.url).href
  writeFileSync(
    program,
    `import { openSqliteStorage } from '${module}'
     const storage = await openSqliteStorage(${JSON.stringify(fileOf(t))})
     await storage.ping()
     await storage.close()`,
  )
  return promisify(execFile)(process.execPath, [program])
}

t.test('sqlite: processes that open a new store concurrently all succeed', async t => {
  await t.resolves(Promise.all(Array.from({ length: 4 }, () => openElsewhere(t))))
  const storage = await open(t)
  t.equal(await storage.users.count({}), 0)
})

t.test('sqlite: a change by another connection is notified without a user within a second', async t => {
  const storage = await open(t)
  const { user } = await add(storage)
  const other = connect(t)
  for (const name of ['first', 'second']) {
    const { promise: notified, resolve } = Promise.withResolvers<string | null>()
    onChange(storage, resolve)
    other.prepare('UPDATE users SET first_name = ? WHERE id = ?').run(name, user.id)
    t.equal(await Promise.race([notified, sleep(1_000, 'barrier')]), null)
    t.match(await storage.users.find(user.id), { firstName: name })
  }
})

t.test('sqlite: own writes are not taken for those of another connection', async t => {
  const storage = await open(t)
  const notified: unknown[] = []
  // Changes before the writer's first check cause one notification, to be safe.
  await storage.ping()
  onChange(storage, userId => notified.push(userId))
  const { user } = await add(storage)
  await storage.users.update(user.id, { firstName: 'New' }, eventOf(user.id, NOW), {
    revokeSessions: false,
    invalidateTokens: false,
    credentialId: null,
    versions: null,
  })
  await sleep(600)
  t.strictSame(notified, [user.id])
})

t.test('sqlite: a lock held by another connection delays only writes', async t => {
  const storage = await open(t)
  const { user } = await add(storage)
  const other = connect(t)
  other.exec('BEGIN IMMEDIATE')
  let settled = false
  const written = add(storage).finally(() => {
    settled = true
  })
  const start = performance.now()
  for (let read = 0; read < 100; read += 1) {
    t.equal((await storage.users.find(user.id))?.id, user.id)
    await sleep(1)
  }
  t.ok(performance.now() - start < 2_000, 'reads and the event loop go on')
  t.equal(settled, false)
  other.exec('COMMIT')
  const { user: late } = await written
  t.equal((await storage.users.find(late.id))?.id, late.id)
})

t.test('sqlite: a lock that is held too long fails the write, and the next one succeeds', async t => {
  const storage = await open(t)
  const other = connect(t)
  other.exec('BEGIN IMMEDIATE')
  const user = newUser()
  await t.rejects(
    storage.accounts.addUser(user, eventOf(user.id), { session: sessionOf(user.id) }),
    UNAVAILABLE,
  )
  other.exec('ROLLBACK')
  t.equal(await storage.users.find(user.id), undefined)
  t.equal(await storage.accounts.addUser(user, eventOf(user.id), { session: sessionOf(user.id) }), true)
})

t.test('sqlite: a lost writer thread fails its calls and is replaced for the next call', async t => {
  const file = fileOf(t)
  const storage = await open(t)
  const fileHandle = new DatabaseFileHandle(file)
  const files = fileHandle.openFiles()
  const { writer, close } = startWriter(files)
  t.teardown(async () => {
    await close()
    await storage.close()
    fileHandle.release()
  })
  renameSync(file, `${file}.away`)
  const user = newUser()
  const write = () => writer.run('accounts:addUser', [user, eventOf(user.id), {}])
  // The thread starts only on the file that was opened.
  await t.rejects(write(), UNAVAILABLE)
  renameSync(`${file}.away`, file)
  const first = await until(
    () => write().catch(() => null),
    result => result !== null,
    10_000,
  )
  t.equal(first, true)
})

t.test('sqlite: another process that opens and closes the database leaves its log', async t => {
  // Closing any descriptor of the file drops the locks of this process, and then the log was deleted in use.
  const storage = await open(t)
  await storage.ping()
  const log = `${fileOf(t)}-wal`
  const { ino } = statSync(log)
  const changeMode = `
    const db = new (require('better-sqlite3'))(process.argv[1], { timeout: 0 })
    db.pragma('locking_mode = EXCLUSIVE')
    try { db.pragma('journal_mode = DELETE') } catch (error) { process.stdout.write(error.code) }
    db.close()`
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', changeMode, fileOf(t)])
  t.equal(stdout, 'SQLITE_BUSY')
  t.equal(statSync(log).ino, ino)
})

t.test('sqlite: an index that another process is writing is no damage', async t => {
  const storage = await open(t)
  const { user } = await add(storage)
  const other = connect(t)
  // It holds the write lock, and has changed only the first of the two copies of the header. In a separate process, since closing a descriptor drops this one's locks.
  other.exec('BEGIN IMMEDIATE')
  const flip = `
    const fs = require('node:fs')
    const fd = fs.openSync(process.argv[1], 'r+')
    const byte = Buffer.alloc(1)
    fs.readSync(fd, byte, 0, 1, 8)
    byte[0] ^= 1
    fs.writeSync(fd, byte, 0, 1, 8)`
  const flipByte = () => promisify(execFile)(process.execPath, ['-e', flip, `${fileOf(t)}-shm`])
  await flipByte()
  // Longer than the interval of the writer's checks of the file.
  await sleep(600)
  await flipByte()
  other.exec('ROLLBACK')
  await t.resolves(storage.ping())
  t.equal((await storage.users.find(user.id))?.id, user.id)
})

t.test('sqlite: a file that another process shrinks and extends is no damage', async t => {
  const storage = await open(t)
  await add(storage)
  const growAndShrink = `
    const db = new (require('better-sqlite3'))(process.argv[1], { timeout: 30000 })
    db.exec('CREATE TABLE large (bytes BLOB)')
    const fill = db.prepare('INSERT INTO large WITH RECURSIVE numbers (number) AS ' +
      '(SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 1500) SELECT randomblob(3000) FROM numbers')
    for (let round = 0; round < 30; round += 1) {
      fill.run()
      db.exec('DELETE FROM large; VACUUM')
      db.pragma('wal_checkpoint(TRUNCATE)')
    }
    db.close()`
  let isDone = false
  const done = promisify(execFile)(process.execPath, ['-e', growAndShrink, fileOf(t)]).finally(() => {
    isDone = true
  })
  // The writer checks the file after each write.
  while (!isDone) await add(storage)
  await done
  await t.resolves(storage.ping())
})
