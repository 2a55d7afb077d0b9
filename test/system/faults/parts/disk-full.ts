/** The disk fills up and is freed while 20 users change their profiles: 503 meanwhile, and no acknowledged write is lost. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startServer } from '../../../support/process.ts'
import { mountSmallDisk } from '../../../support/small-disk.ts'
import { until } from '../../../support/until.ts'
import { Report, spread } from '../../instances/report.ts'
import type { FaultPart } from '../part.ts'
import { missing, type Profile, signUpProfiles, startChanges } from '../profiles.ts'

const USERS = 20
const ROUNDS = 6
/** Sizes: the database, its longest log, and room for both. */
const DISK_SIZE = 12
/** Milliseconds for which the disk stays full, and until a condition counts as failed. */
const FULL_FOR = 2_500
const DEADLINE = 10_000

export const run = async ({ context, random }: FaultPart): Promise<Report> => {
  const report = new Report('The disk is full')
  const disk = mountSmallDisk(context, DISK_SIZE)
  if (disk === null) {
    report.figure('skipped', 'a small file system can only be mounted by root, on Linux')
    return report
  }
  const databaseFile = join(disk.folder, 'data', 'test.db')
  const failures: string[] = []
  const backAfter: number[] = []
  const totals = { acknowledged: 0, rejected: 0, readyWhileFull: 0, notReadyWhileFull: 0 }
  let profiles: Profile[] | null = null

  for (let round = 1; round <= ROUNDS; round += 1) {
    // With a new log, which has to grow.
    const server = await startServer(context, { databaseFile })
    const ready = async () => (await fetch(`${server.url}/ready`)).status
    profiles ??= await signUpProfiles(server.url, USERS)
    failures.push(...(await missing(server.url, profiles)))
    const changes = startChanges(server.url, profiles)
    await sleep(random.integer(20, 300))
    disk.fill()
    const rejected = () => changes.statuses.get(503) ?? 0
    await until(rejected, count => count > 0, DEADLINE)
    const end = performance.now() + FULL_FOR
    while (performance.now() < end) {
      totals[(await ready()) === 503 ? 'notReadyWhileFull' : 'readyWhileFull'] += 1
      await sleep(50)
    }
    if ((await fetch(`${server.url}/health`)).status !== 200) failures.push('/health was not 200')
    totals.rejected += rejected()
    if (round % 2 === 0) {
      // A process that ends while the disk is full keeps everything acknowledged, too.
      await changes.stop()
      await server.stop('SIGKILL')
      disk.free()
    } else {
      disk.free()
      const freedAt = performance.now()
      if ((await until(ready, status => status === 200, DEADLINE)) !== 200)
        failures.push('it did not recover')
      backAfter.push(performance.now() - freedAt)
      await changes.stop()
      await server.stop('SIGTERM')
    }
    totals.acknowledged += changes.statuses.get(200) ?? 0
    for (const status of changes.statuses.keys())
      if (status !== 200 && status !== 503) failures.push(`a change returned ${status}`)
  }
  const server = await startServer(context, { databaseFile })
  const lost = await missing(server.url, profiles ?? [])
  await server.stop('SIGTERM')
  report.figure('rounds', ROUNDS)
  report.figure('acknowledged', totals.acknowledged)
  report.figure('rejected with 503', totals.rejected)
  report.figure('/ready while full: 503', totals.notReadyWhileFull)
  report.figure('/ready while full: 200', totals.readyWhileFull)
  report.figure('/ready is 200 again after (median / 99 % / max)', spread(backAfter))
  report.expect(totals.rejected > 0, 'the disk was never full')
  report.expect(totals.readyWhileFull === 0, '/ready was 200 while writes failed')
  report.failures('acknowledged and missing', lost)
  report.failures('other failures', failures)
  return report
}
