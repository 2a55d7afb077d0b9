/** Standard output is full, closed or unread: the service serves and stops as usual. */
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { type Context, temporaryFolder } from '../../../support/build.ts'
import { pipelined, type Running, startWithOutput } from '../../../support/process.ts'
import { until } from '../../../support/until.ts'
import { milliseconds, Report } from '../../instances/report.ts'
import type { FaultPart } from '../part.ts'

const REQUESTS = 1_000

/** Milliseconds that a stop may take, and until missing lines count as a failure. */
const STOP_LIMIT = 8_000
const DEADLINE = 10_000

/** Sizes of the full file system, before and after it is enlarged. */
const SIZE = '64k'
const ENLARGED = '4m'

/** Two lines per request. */
const LOGGED = { env: { LOG_REQUESTS: 'on' } }

const open = (context: Context, path: string, flags: number | string): number => {
  const fd = openSync(path, flags)
  context.teardown(() => closeSync(fd))
  return fd
}

const fifo = (context: Context): string => {
  const path = join(temporaryFolder(context), 'log')
  execFileSync('mkfifo', [path])
  return path
}

/** `null` where file systems cannot be mounted. */
const mountSmall = (context: Context): string | null => {
  const folder = temporaryFolder(context)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    return null
  }
  context.teardown(() => execFileSync('umount', ['--lazy', folder]))
  return folder
}

const serve = async (report: Report, name: string, server: Running): Promise<void> => {
  const responded = await pipelined(server.port, '/health', REQUESTS)
  report.expect(responded === REQUESTS, `${name}: ${responded} of ${REQUESTS} requests had a response`)
}

const stop = async (report: Report, name: string, server: Running): Promise<void> => {
  const begin = performance.now()
  const code = await server.stop('SIGTERM')
  const took = performance.now() - begin
  report.figure(`${name}: exit code · after SIGTERM`, `${code} · ${milliseconds(took)}`)
  report.expect(code === 0, `${name}: the exit code is ${code}`)
  report.expect(took < STOP_LIMIT, `${name}: the stop took ${milliseconds(took)}`)
  report.expect(server.output() === '', `${name}: on standard error: ${server.output()}`)
}

/** The disk is full, then has space again: the log counts the missing lines, and all others are complete. */
const fillDisk = async (context: Context, report: Report): Promise<void> => {
  const name = 'full file system'
  const folder = mountSmall(context)
  if (folder === null) return report.figure(name, 'skipped: it cannot be mounted here')
  const log = join(folder, 'log')
  const server = await startWithOutput(context, [open(context, log, 'a')], LOGGED)
  await serve(report, name, server)
  // The log is written after the responses: it fills up first, then lines are dropped.
  await until(
    () => statfsSync(folder).bfree,
    free => free === 0,
    DEADLINE,
  )
  await serve(report, name, server)
  execFileSync('mount', ['-o', `remount,size=${ENLARGED}`, folder])
  const count = /"dropped":(\d+)/
  const text = () => readFileSync(log, 'utf8')
  const dropped = Number(count.exec(await until(text, found => count.test(found), DEADLINE))?.[1])
  report.figure(`${name}: dropped lines that were counted`, dropped)
  report.expect(dropped > 0, `${name}: no line tells how many were dropped`)
  await stop(report, name, server)
  const isBroken = (line: string): boolean => {
    try {
      return JSON.parse(line) === null
    } catch {
      return true
    }
  }
  const lines = text().split('\n').slice(0, -1)
  const broken = lines.filter(isBroken)
  report.figure(`${name}: lines written · cut by the full disk`, `${lines.length} · ${broken.length}`)
  report.expect(broken.length <= 1, `${name}: ${broken.length} lines cannot be parsed`)
  report.expect(lines.at(-1)?.includes('"stopped"') === true, `${name}: the last line is ${lines.at(-1)}`)
}

export const run = async ({ context }: FaultPart): Promise<Report> => {
  const report = new Report(`standard output cannot be written, ${REQUESTS} requests each`)
  const check = async (name: string, fd: number, begin: () => void = () => undefined): Promise<void> => {
    const server = await startWithOutput(context, [fd], LOGGED)
    begin()
    await serve(report, name, server)
    await stop(report, name, server)
  }
  await check('/dev/full', open(context, '/dev/full', constants.O_WRONLY))
  await fillDisk(context, report)
  // Opened for reading and writing, so that there is a reader, who never reads.
  await check('pipe not read', open(context, fifo(context), constants.O_RDWR))
  const path = fifo(context)
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  await check('pipe closed', open(context, path, constants.O_WRONLY), () => closeSync(reader))
  return report
}
