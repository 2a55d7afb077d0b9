import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { secretFileOf } from '../auth/secret-file.ts'
import { SETTINGS } from '../config/settings.ts'
import type { CopyReport } from '../storage/copy/copy.ts'
import { CopyError } from '../storage/copy/plan.ts'
import { Refusal, UsageError } from './failure.ts'
import { readOption } from './options.ts'
import { count, print, progress, STOPPED, stopSignal, table, tell } from './output.ts'

const summary = (report: CopyReport, file: string): string[] => {
  const {
    total,
    added,
    changed,
    unchanged,
    kept,
    removed,
    deleted,
    conflicts,
    sessions,
    emailTokens,
    events,
  } = report
  const rows: [number, string][] = [
    [added, 'copied'],
    [changed, 'changed since and copied again'],
    [unchanged, 'unchanged'],
    [kept, 'changed later in the target and left as they are there'],
    [removed, 'deleted in the target since and left deleted'],
    [conflicts, 'in conflict'],
  ]
  const secretFile = secretFileOf(file)
  return [
    `${count(total, 'user')} in the source:`,
    ...table(rows.map(([number, what]) => [`  ${number.toLocaleString('en')}`, what])),
    `${count(deleted, 'user')} deleted in the source since and now deleted in the target`,
    `${count(sessions, 'session')} copied or brought up to date, ${count(emailTokens, 'e-mail token')} copied`,
    `${count(events, 'event')} of the audit log copied`,
    'Access tokens go on working where the service is given the secret that has signed them, as JWT_SECRET or JWT_SECRET_FILE',
    ...(existsSync(secretFile)
      ? [`The secret that the service made for itself is kept in ${secretFile}`]
      : []),
  ]
}

/** Copies, and says of a failure whether something had been copied before it. */
const attempt = async (file: string, url: string): Promise<CopyReport> => {
  const tellProgress = progress()
  let copied = 0
  const onProgress = (done: number, total: number): void => {
    copied = done
    tellProgress(done, total)
  }
  // Both engines, which no other command needs.
  const { copy } = await import('../storage/copy/copy.ts')
  try {
    return await copy(file, url, { signal: stopSignal(), onProgress })
  } catch (error) {
    if (!(error instanceof CopyError)) throw error
    throw new Refusal(`${copied === 0 ? 'Nothing was copied' : 'Nothing more is copied'}: ${error.message}`)
  }
}

const run = async ({ from, to }: { from: string; to: string }): Promise<void> => {
  const source = readOption('--from', SETTINGS.DATABASE_URL, from)
  const target = readOption('--to', SETTINGS.DATABASE_URL, to)
  if (source.engine !== 'sqlite' || target.engine !== 'postgres') {
    throw new UsageError('Only from SQLite to PostgreSQL can be copied: --from sqlite:… --to postgres://…')
  }
  const report = await attempt(source.file, target.url)
  print(false, report, summary(report, source.file))
  for (const { user, holder } of report.told) {
    tell(`User ${user.id} was left out: user ${holder} of the target has the same e-mail`)
  }
  const untold = report.conflicts - report.told.length
  if (untold > 0) tell(`${count(untold, 'more was', 'more were')} left out for the same reason`)
  if (!report.complete) tell(STOPPED)
  if (!report.complete || report.conflicts > 0) process.exitCode = 1
}

export const copyCommand = (program: Command): void => {
  program
    .command('copy')
    .description(
      'Copy users, sessions, e-mail tokens and the audit log from an SQLite file to a PostgreSQL database; run again, what is missing and what has changed',
    )
    .requiredOption('--from <url>', 'sqlite:<path of a file>, which is only read')
    .requiredOption(
      '--to <url>',
      'postgres://<user>:<password>@<host>/<database>; the password is also taken from PGPASSWORD',
    )
    .action(run)
}
