/** Runs the image that `build.ts` has built: alone on SQLite, and twice on PostgreSQL behind Caddy. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { print, startExperiment } from '../../support/experiment.ts'
import { FOLDER } from './podman.ts'
import { runRollingUpdate } from './rolling-update.ts'
import { runSqlite } from './sqlite.ts'

/** Milliseconds that the parts may take. */
const LIMIT = 600_000

const { context, cleanUp, abandon } = startExperiment(LIMIT)

/** Caddy finds the instances by the names of compose.yaml. */
const isolate = (): void => {
  const hosts = join(FOLDER, 'hosts')
  writeFileSync(hosts, '127.0.0.1 localhost\n127.0.0.2 gatehouse-1\n127.0.0.3 gatehouse-2\n')
  execFileSync('mount', ['--bind', hosts, '/etc/hosts'])
  // What podman and runc leave in these folders ends with the mounts.
  for (const path of ['/run', '/dev/shm']) execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', path])
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
}

try {
  isolate()
  const reports = [await runSqlite(), await runRollingUpdate(context)]
  const passed = reports.map(report => report.print())
  await cleanUp()
  print(passed.every(Boolean) ? '\nall passed' : '\nfailed')
  process.exitCode = passed.every(Boolean) ? 0 : 1
} catch (error) {
  abandon(error)
}
