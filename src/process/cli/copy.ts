/** `copy`: from SQLite to PostgreSQL. */
import type { Command } from 'commander'
import { generatedKeyFiles } from '#core/auth/secret-file'
import { CommandError, UsageError } from '#feature/commands/failure'
import { readOption } from '#feature/commands/options'
import {
  count,
  formatNumber,
  print,
  printStatus,
  progress,
  STOPPED,
  stopSignal,
  table,
} from '#feature/commands/output'
import { allFeatures } from '#features/built-in'
import type { CopyReport, TableReport } from '#storage/copy/copy'
import { CopyError } from '#storage/copy/plan'
import { SETTINGS } from '../config/settings.ts'

const tableSummary = (name: string, { added, changed, deleted, conflicts }: TableReport): string =>
  [
    `${count(added, 'row')} of ${name} copied`,
    `${formatNumber(changed)} changed since and copied again`,
    `${formatNumber(deleted)} deleted in the source since and now deleted in the target`,
    ...(conflicts === 0 ? [] : [`${formatNumber(conflicts)} in conflict`]),
  ].join(', ')

const summary = (report: CopyReport, file: string): string[] => {
  const {
    total,
    added,
    changed,
    unchanged,
    newerInTarget,
    deletedInTarget,
    deletedInSource,
    conflicts,
    sessions,
    emailTokens,
    events,
    tables,
  } = report
  const rows: [number, string][] = [
    [added, 'copied'],
    [changed, 'changed since and copied again'],
    [unchanged, 'unchanged'],
    [newerInTarget, 'changed later in the target and not overwritten'],
    [deletedInTarget, 'deleted in the target since and not restored'],
    [conflicts, 'in conflict'],
  ]
  return [
    `${count(total, 'user')} in the source:`,
    ...table(rows.map(([number, what]) => [`  ${formatNumber(number)}`, what])),
    `${count(deletedInSource, 'user')} deleted in the source since and now deleted in the target`,
    `${count(sessions, 'session')} copied or updated, ${count(emailTokens, 'e-mail token')} copied`,
    `${count(events, 'event')} of the audit log copied`,
    ...Object.entries(tables).map(([name, rows]) => tableSummary(name, rows)),
    'Access tokens stay valid if the new service has the same JWT_SECRET or JWT_SECRET_FILE, and private key; codes with the same ENCRYPTION_KEY',
    ...generatedKeyFiles(file).map(
      ({ kind, file }) => `The ${kind} that the service generated is in ${file}`,
    ),
  ]
}

/** Copies. An error says whether something was copied before it. */
const runCopy = async (file: string, url: string): Promise<CopyReport> => {
  const reportProgress = progress()
  let copied = 0
  const onProgress = (done: number, total: number): void => {
    copied = done
    reportProgress(done, total)
  }
  // Loaded here because it loads both engines, which no other command needs.
  const { copy } = await import('#storage/copy/copy')
  try {
    return await copy(file, url, { features: allFeatures(), signal: stopSignal(), onProgress })
  } catch (error) {
    if (!(error instanceof CopyError)) throw error
    throw new CommandError(
      `${copied === 0 ? 'Nothing was copied' : 'The copy is incomplete'}: ${error.message}`,
    )
  }
}

const hasConflicts = ({ conflicts, tables }: CopyReport): boolean =>
  conflicts > 0 || Object.values(tables).some(table => table.conflicts > 0)

const run = async ({ from, to }: { from: string; to: string }): Promise<void> => {
  const source = readOption('--from', SETTINGS.DATABASE_URL.read, from)
  const target = readOption('--to', SETTINGS.DATABASE_URL.read, to)
  if (source.engine !== 'sqlite' || target.engine !== 'postgres') {
    throw new UsageError(
      'A copy is possible only from SQLite to PostgreSQL: --from sqlite:… --to postgres://…',
    )
  }
  const report = await runCopy(source.file, target.url)
  print(false, report, summary(report, source.file))
  for (const { user, holder } of report.conflictSamples) {
    printStatus(`User ${user.id} was left out: user ${holder} of the target has the same e-mail`)
  }
  const unlisted = report.conflicts - report.conflictSamples.length
  if (unlisted > 0) printStatus(`${count(unlisted, 'more was', 'more were')} left out for the same reason`)
  for (const [name, { conflicts }] of Object.entries(report.tables))
    if (conflicts > 0)
      printStatus(
        `${count(conflicts, 'row')} of ${name} left out: another row of the target has the same key, or a value that must be unique`,
      )
  for (const name of report.unknownFeatures)
    printStatus(`The tables of the feature ${name} were left out: this version does not have the feature`)
  if (!report.complete) printStatus(STOPPED)
  if (!report.complete || hasConflicts(report)) process.exitCode = 1
}

export const copyCommand = (program: Command): void => {
  program
    .command('copy')
    .description(
      'Copy users, sessions, e-mail tokens, the audit log and the tables of features from an SQLite file to a PostgreSQL database; a repeated copy adds what is missing or has changed',
    )
    .requiredOption('--from <url>', 'sqlite:<path>; the file is opened read-only')
    .requiredOption(
      '--to <url>',
      'postgres://<user>:<password>@<host>/<database>; the password can also come from PGPASSWORD',
    )
    .action(run)
}
