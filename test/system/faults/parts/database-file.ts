/**
 * The database file is removed, replaced or overwritten at a random time while 20 users change their profiles. Every
 * acknowledged write is in the file that a restart opens. If that is impossible, nothing more is acknowledged.
 */
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { temporaryFolder } from '../../../support/build.ts'
import { type Running, startServer } from '../../../support/process.ts'
import { until } from '../../../support/until.ts'
import { Report, spread } from '../../instances/report.ts'
import type { FaultPart } from '../part.ts'
import { copyProfiles, missing, type Profile, signUpProfiles, startChanges } from '../profiles.ts'

const USERS = 20
/** Rounds per variant. */
const REPEATS = 2
/** Milliseconds of load before the fault, and afterwards until the service has noticed it and checkpointed the log. */
const LOAD = { min: 50, max: 700 }
const NOTICED = 1_000

interface Variant {
  readonly name: string
  /** @returns a function that restores the files, if possible. */
  readonly make: (file: string, template: string) => (() => void) | null
  /** A service that starts on the current files must find a database. */
  readonly opensMeanwhile?: true
}

const aside = (file: string): string => `${file}.aside`

const moveAway = (path: string): (() => void) => {
  renameSync(path, aside(path))
  return () => renameSync(aside(path), path)
}

const overwriteHeader = (size: number) => (file: string) => {
  const fd = openSync(file, 'r+')
  const before = Buffer.alloc(size)
  readSync(fd, before, 0, size, 0)
  writeSync(fd, Buffer.alloc(size, 0xff), 0, size, 0)
  closeSync(fd)
  return () => {
    const again = openSync(file, 'r+')
    writeSync(again, before, 0, size, 0)
    closeSync(again)
  }
}

const VARIANTS: readonly Variant[] = [
  {
    name: 'deleted',
    make: file => {
      unlinkSync(file)
      return null
    },
  },
  { name: 'moved away', make: moveAway },
  {
    name: 'replaced (mv)',
    opensMeanwhile: true,
    make: (file, template) => {
      copyFileSync(template, `${file}.new`)
      const putBack = moveAway(file)
      renameSync(`${file}.new`, file)
      return putBack
    },
  },
  {
    name: 'replaced by a link',
    opensMeanwhile: true,
    make: (file, template) => {
      copyFileSync(template, `${file}.new`)
      const putBack = moveAway(file)
      symlinkSync(`${file}.new`, file)
      return () => {
        unlinkSync(file)
        putBack()
      }
    },
  },
  {
    name: 'overwritten (cp)',
    make: (file, template) => {
      copyFileSync(template, file)
      return null
    },
  },
  { name: 'header overwritten', make: overwriteHeader(100) },
  { name: 'magic overwritten', make: overwriteHeader(16) },
  {
    name: 'log deleted',
    make: file => {
      unlinkSync(`${file}-wal`)
      return () => undefined
    },
  },
  {
    name: 'log replaced',
    make: file => {
      writeFileSync(`${file}.new`, '')
      renameSync(`${file}.new`, `${file}-wal`)
      return () => undefined
    },
  },
  {
    name: 'index deleted',
    make: file => {
      unlinkSync(`${file}-shm`)
      return () => undefined
    },
  },
  {
    name: 'folder moved',
    make: file => moveAway(dirname(file)),
  },
]

export const run = async ({ context, random }: FaultPart): Promise<Report> => {
  const report = new Report('The database file is taken away')
  const folder = temporaryFolder(context)
  const template = join(folder, 'template.db')
  const first = await startServer(context, { databaseFile: template })
  const signedUp = await signUpProfiles(first.url, USERS)
  await first.stop('SIGTERM')

  const noticedAfter: number[] = []
  const lost: string[] = []
  const falselyAcknowledged: string[] = []
  const failures: string[] = []
  const totals = { rounds: 0, acknowledged: 0, rejected: 0 }

  const start = (databaseFile: string): Promise<Running> => startServer(context, { databaseFile })
  const readyStatus = async ({ url }: Running): Promise<number> => (await fetch(`${url}/ready`)).status

  /** Restarts on the current files, as the documentation tells operators to. */
  const restart = async (name: string, file: string): Promise<Running> => {
    try {
      return await start(file)
    } catch (error) {
      if (!/remove/.test(String(error))) throw error
      failures.push(...(/\.db-wal/.test(String(error)) ? [] : [`${name}: the error names no file`]))
      for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true })
      return start(file)
    }
  }

  const runRound = async ({ name, make, opensMeanwhile }: Variant): Promise<void> => {
    totals.rounds += 1
    const file = join(folder, `round-${totals.rounds}`, 'test.db')
    mkdirSync(dirname(file))
    copyFileSync(template, file)
    const profiles = copyProfiles(signedUp)
    const server = await start(file)
    const changes = startChanges(server.url, profiles)
    await sleep(random.integer(LOAD.min, LOAD.max))
    const putBack = make(file, template)
    const madeAt = performance.now()
    const status = await until(
      () => readyStatus(server),
      response => response === 503,
      NOTICED,
    )
    const noticed = performance.now() - madeAt
    await sleep(Math.max(NOTICED - noticed, 0))
    await changes.stop()
    await server.stop(random.integer(1, 8) === 1 ? 'SIGTERM' : 'SIGKILL')
    totals.acknowledged += changes.statuses.get(200) ?? 0
    totals.rejected += changes.statuses.get(503) ?? 0
    if (status === 503) noticedAfter.push(noticed)
    for (const response of changes.statuses.keys())
      if (response !== 200 && response !== 503) failures.push(`${name}: a change returned ${response}`)
    await verify({ name, file, profiles, putBack, madeAt, isNoticed: status === 503, opensMeanwhile })
  }

  interface Outcome {
    readonly name: string
    readonly file: string
    readonly profiles: readonly Profile[]
    readonly putBack: (() => void) | null
    readonly madeAt: number
    readonly isNoticed: boolean
    readonly opensMeanwhile: true | undefined
  }

  const verify = async ({ name, file, profiles, putBack, madeAt, isNoticed, opensMeanwhile }: Outcome) => {
    if (opensMeanwhile) {
      const meanwhile = await restart(name, file)
      const names = await missing(meanwhile.url, signedUp)
      failures.push(...names.map(failure => `${name}, on the files meanwhile: ${failure}`))
      await meanwhile.stop('SIGTERM')
    }
    putBack?.()
    const after = profiles.filter(({ sentAt }) => sentAt > madeAt)
    const server = await restart(name, file)
    if (putBack !== null) {
      const wrong = await missing(server.url, profiles)
      lost.push(...wrong.map(failure => `${name}: ${failure}`))
    } else {
      const wrong = await missing(server.url, after)
      falselyAcknowledged.push(...wrong.map(failure => `${name}, sent after it: ${failure}`))
    }
    // The replacement may have the same bytes: then nothing is lost, since the log belongs to it.
    if (!isNoticed) {
      const wrong = await missing(server.url, profiles)
      failures.push(...wrong.map(failure => `${name}, not noticed: ${failure}`))
    }
    await server.stop('SIGKILL')
  }

  // Rounds run concurrently: most of a round is waiting.
  for (const variant of VARIANTS) await Promise.all(Array.from({ length: REPEATS }, () => runRound(variant)))
  report.figure('rounds', totals.rounds)
  report.figure('acknowledged', totals.acknowledged)
  report.figure('rejected with 503', totals.rejected)
  report.figure('/ready is 503 after (median / 99 % / max)', spread(noticedAfter))
  report.expect(Math.max(...noticedAfter) < NOTICED, 'it took longer than a second')
  report.failures('acknowledged and missing after a restart', lost)
  report.failures('acknowledged after the file was lost for good', falselyAcknowledged)
  report.failures('other failures', failures)
  return report
}
