/**
 * Faults of the database file and its disk, with a real process: acknowledged writes are in the file that a restart opens
 * (docs/design.md, "Failures and hostile input").
 */
import { copyFileSync, mkdirSync, renameSync, rmSync, unlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { newDatabaseFile, type Running, spawnServer, startServer } from '../support/process.ts'
import { mountSmallDisk } from '../support/small-disk.ts'
import { createMigratedFile } from '../support/sqlite.ts'
import { until } from '../support/until.ts'
import { missing, signUpProfiles, startChanges } from '../system/faults/profiles.ts'

t.jobs = 3

const USERS = 5
/** Milliseconds within which a loss is noticed (docs/design.md, "Failures and hostile input"), and until a condition counts as failed. */
const NOTICED = 1_000
const DEADLINE = 20_000

const statusOf = async ({ url }: Running, path: string): Promise<number> => (await fetch(url + path)).status

const signedUp = async (t: Test) => {
  const databaseFile = await newDatabaseFile(t)
  const server = await startServer(t, { databaseFile })
  const profiles = await signUpProfiles(server.url, USERS)
  return { databaseFile, server, profiles }
}

/** Makes changes until so many are acknowledged, and continues. */
const change = async (server: Running, profiles: Parameters<typeof startChanges>[1], count: number) => {
  const changes = startChanges(server.url, profiles)
  await until(
    () => changes.statuses.get(200) ?? 0,
    acknowledged => acknowledged >= count,
    DEADLINE,
  )
  return changes
}

const FAULTS: Record<string, (file: string) => () => void> = {
  'moved away': file => {
    renameSync(file, `${file}.aside`)
    return () => renameSync(`${file}.aside`, file)
  },
  'replaced by another one': file => {
    renameSync(file, `${file}.aside`)
    copyFileSync(`${file}.aside`, `${file}.other`)
    renameSync(`${file}.other`, file)
    return () => renameSync(`${file}.aside`, file)
  },
  'without its log': file => {
    unlinkSync(`${file}-wal`)
    return () => undefined
  },
}

t.test('one fault after the other', async t => {
  const { databaseFile, server: first, profiles } = await signedUp(t)
  let server = first
  const restart = async (): Promise<void> => {
    server = await startServer(t, { databaseFile })
  }
  for (const [name, make] of Object.entries(FAULTS))
    await t.test(
      `a database ${name}: 503, and after a restart every acknowledged change is there`,
      async t => {
        const changes = await change(server, profiles, 50)
        const repair = make(databaseFile)
        const lostAt = performance.now()
        t.equal(
          await until(
            () => statusOf(server, '/ready'),
            status => status === 503,
            NOTICED,
          ),
          503,
        )
        t.equal(await statusOf(server, '/health'), 200)
        await new Promise(resolve => setTimeout(resolve, NOTICED))
        await changes.stop()
        t.strictSame(
          profiles.filter(({ sentAt }) => sentAt > lostAt),
          [],
          'none was acknowledged that was sent later',
        )
        t.match(server.output(), /"level":50[^\n]*the database file [^\n]*test\.db/)
        await server.stop('SIGKILL')
        repair()
        await restart()
        t.strictSame(await missing(server.url, profiles), [])
      },
    )
})

t.test(
  'a back-up copied over the database stops all acknowledgements, and a restart rejects its log',
  async t => {
    const { databaseFile, server, profiles } = await signedUp(t)
    await server.stop('SIGTERM')
    const backUp = join(dirname(databaseFile), 'back-up.db')
    copyFileSync(databaseFile, backUp)
    const before = profiles.map(profile => ({ ...profile, pending: [] }))

    // A stop checkpoints the log into the database: the back-up is an older state.
    const first = await startServer(t, { databaseFile })
    await (await change(first, profiles, 50)).stop()
    await first.stop('SIGTERM')
    const second = await startServer(t, { databaseFile })
    const changes = await change(second, profiles, 50)
    copyFileSync(backUp, databaseFile)
    const lostAt = performance.now()
    t.equal(
      await until(
        () => statusOf(second, '/ready'),
        status => status === 503,
        NOTICED,
      ),
      503,
    )
    await changes.stop()
    t.strictSame(
      profiles.filter(({ sentAt }) => sentAt > lostAt),
      [],
    )
    t.equal(await second.stop('SIGTERM'), 0, 'it stops all the same')

    const rejected = spawnServer({ DATABASE_URL: `sqlite:${databaseFile}`, NODE_ENV: 'test', PORT: '0' })
    let said = ''
    rejected.stderr?.on('data', chunk => {
      said += chunk
    })
    t.equal(await new Promise(resolve => rejected.once('exit', resolve)), 1)
    t.match(said, /test\.db-wal belongs to another database, or to another state of this one: remove it/)
    for (const suffix of ['-wal', '-shm']) rmSync(databaseFile + suffix, { force: true })
    const again = await startServer(t, { databaseFile })
    t.strictSame(await missing(again.url, before), [], 'the back-up is as it was')
  },
)

t.test(
  'with a full disk /ready is 503 while writes fail, reads continue, and the service recovers',
  async t => {
    const disk = mountSmallDisk(t, 12)
    if (disk === null)
      return void t.pass('skipped: a small file system can only be mounted by root, on Linux')
    mkdirSync(join(disk.folder, 'data'))
    const databaseFile = join(disk.folder, 'data', 'test.db')
    await createMigratedFile(databaseFile)
    const server = await startServer(t, { databaseFile })
    const profiles = await signUpProfiles(server.url, USERS)
    const changes = await change(server, profiles, 5)
    t.equal(await statusOf(server, '/ready'), 200)
    disk.fill()
    await until(
      () => changes.statuses.get(503) ?? 0,
      rejected => rejected > 0,
      DEADLINE,
    )
    await changes.stop()
    // Without further requests: the service retries by itself.
    for (let look = 0; look < 30; look += 1) {
      t.equal(await statusOf(server, '/ready'), 503)
      await new Promise(resolve => setTimeout(resolve, 100))
    }
    t.strictSame(await missing(server.url, profiles), [], 'reads')
    disk.free()
    t.equal(
      await until(
        () => statusOf(server, '/ready'),
        status => status === 200,
        DEADLINE,
      ),
      200,
    )
    await (await change(server, profiles, 20)).stop()
    await server.stop('SIGKILL')
    const again = await startServer(t, { databaseFile })
    t.strictSame(await missing(again.url, profiles), [])
    await again.stop('SIGTERM')
  },
)
