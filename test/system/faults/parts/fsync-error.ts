/**
 * fsync fails with EIO while 20 users change their profiles, and writes since the last successful fsync are lost. Writes
 * that were acknowledged before or afterwards are there after a restart.
 */
import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { temporaryFolder } from '../../../support/build.ts'
import { startServer } from '../../../support/process.ts'
import { until } from '../../../support/until.ts'
import { Report } from '../../instances/report.ts'
import type { FaultPart } from '../part.ts'
import { missing, signUpProfiles, startChanges } from '../profiles.ts'

const USERS = 20
/** The file that fails: the log (commits), then the database (checkpoints). */
const SUFFIXES = ['.db-wal', '.db', '.db', '.db-wal', '.db', '.db'] as const
/** Milliseconds of load before, during and after the failure. */
const LOAD = { min: 100, max: 800 }
const FAILING = { '.db-wal': 1_000, '.db': 3_000 }
const DEADLINE = 10_000

/** @returns `null` without a compiler or Linux. */
const compile = (folder: string): string | null => {
  if (process.platform !== 'linux') return null
  const library = join(folder, 'fsync-error.so')
  const source = join(import.meta.dirname, '..', 'fsync-error.c')
  try {
    execFileSync('cc', ['-shared', '-fPIC', '-o', library, source, '-ldl', '-lpthread'], { stdio: 'ignore' })
    return library
  } catch {
    return null
  }
}

export const run = async ({ context, random }: FaultPart): Promise<Report> => {
  const report = new Report('fsync fails')
  const folder = temporaryFolder(context)
  const library = compile(folder)
  if (library === null) {
    report.figure('skipped', 'it takes Linux and a C compiler')
    return report
  }
  const control = join(folder, 'fails')
  const databaseFile = join(folder, 'test.db')
  const totals = { acknowledged: 0, rejected: 0, acknowledgedWhileFailing: 0, restarts: 0 }
  const lost: string[] = []
  const failures: string[] = []

  let server = await startServer(context, { databaseFile })
  const profiles = await signUpProfiles(server.url, USERS)
  await server.stop('SIGTERM')
  for (const suffix of SUFFIXES) {
    server = await startServer(context, { databaseFile, env: { LD_PRELOAD: library, FSYNC_ERROR: control } })
    const ready = async () => (await fetch(`${server.url}/ready`)).status
    const changes = startChanges(server.url, profiles)
    const count = (status: number) => changes.statuses.get(status) ?? 0
    await sleep(random.integer(LOAD.min, LOAD.max))
    const rejectedBefore = count(503)
    writeFileSync(control, suffix)
    if (suffix === '.db-wal') {
      await until(
        () => count(503),
        rejected => rejected > rejectedBefore,
        DEADLINE,
      )
      const acknowledged = count(200)
      await sleep(FAILING[suffix])
      totals.acknowledgedWhileFailing += count(200) - acknowledged
      if ((await ready()) !== 503) failures.push('/ready was 200 while no commit succeeded')
    } else await sleep(FAILING[suffix])
    rmSync(control)
    // A failed checkpoint after an interrupted one requires a restart, and the log says so.
    const says = () =>
      /a checkpoint of the database file [^"]* failed with a disk error[^"]*restart the service/.test(
        server.output(),
      )
    await until(
      async () => (await ready()) === 200 || says(),
      isSettled => isSettled,
      DEADLINE,
    )
    if (says()) totals.restarts += 1
    else if ((await ready()) !== 200) failures.push(`it did not recover (${suffix})`)
    await sleep(random.integer(LOAD.min, LOAD.max))
    await changes.stop()
    await server.stop('SIGKILL')
    totals.acknowledged += count(200)
    totals.rejected += count(503)
    for (const status of changes.statuses.keys())
      if (status !== 200 && status !== 503) failures.push(`a change returned ${status}`)
    server = await startServer(context, { databaseFile })
    lost.push(...(await missing(server.url, profiles)))
    await server.stop('SIGTERM')
  }
  report.figure('rounds', SUFFIXES.length)
  report.figure('rounds that took a restart', totals.restarts)
  report.figure('acknowledged', totals.acknowledged)
  report.figure('rejected with 503', totals.rejected)
  report.expect(totals.rejected > 0, 'fsync never failed')
  report.figure('acknowledged while every commit failed', totals.acknowledgedWhileFailing)
  report.expect(totals.acknowledgedWhileFailing === 0, 'a commit that failed was acknowledged')
  report.failures('acknowledged and missing after a restart', lost)
  report.failures('other failures', failures)
  return report
}
