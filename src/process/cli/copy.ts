/** `copy`: a store into an empty one. */
import type { Command } from 'commander'
import { generatedKeyFiles } from '#core/auth/secret-file'
import { schemaOf } from '#core/store/migrations'
import { COPIED_TABLES } from '#core/store/tables'
import { CommandError, UsageError } from '#feature/commands/failure'
import { readOption } from '#feature/commands/options'
import { formatNumber, print, printStatus, progress, stopSignal, table } from '#feature/commands/output'
import { allFeatures } from '#features/built-in'
import type { CopyReport } from '#storage/copy/copy'
import { CopyError } from '#storage/copy/store'
import type { StorageLocation } from '#storage/location'
import { SETTINGS } from '../config/settings.ts'

const summary = ({ tables }: CopyReport, source: StorageLocation): string[] => [
  'Copied rows:',
  ...table(Object.entries(tables).map(([name, rows]) => [`  ${formatNumber(rows)}`, name])),
  'Access tokens stay valid if the new service has the same JWT_SECRET or JWT_SECRET_FILE, and private key; codes with the same ENCRYPTION_KEY',
  ...(source.engine === 'sqlite' ? generatedKeyFiles(source.file) : []).map(
    ({ kind, file }) => `The ${kind} that the service generated is in ${file}`,
  ),
]

const run = async ({ from, to }: { from: string; to: string }): Promise<void> => {
  const source = readOption('--from', SETTINGS.DATABASE_URL.read, from)
  const target = readOption('--to', SETTINGS.DATABASE_URL.read, to)
  if (from === to) throw new UsageError('--from and --to are the same database')
  const signal = stopSignal()
  // Loaded here because it loads the engines, which other commands do not need.
  const { copy } = await import('#storage/copy/copy')
  try {
    const onProgress = progress('rows')
    const options = { coreTables: COPIED_TABLES, schema: schemaOf(allFeatures()), signal, onProgress }
    const report = await copy(source, target, options)
    print(false, report, summary(report, source))
    for (const name of report.unknownFeatures)
      printStatus(`The tables of the feature ${name} were left out: this version does not have the feature`)
  } catch (error) {
    if (error === signal.reason) throw new CommandError('Stopped: nothing was copied')
    throw error instanceof CopyError ? new CommandError(`Nothing was copied: ${error.message}`) : error
  }
}

export const copyCommand = (program: Command): void => {
  program
    .command('copy')
    .description(
      'Copy everything from a database that no process uses into an empty one, on SQLite or PostgreSQL: users, sessions, keys, the audit log and the tables of features',
    )
    .requiredOption('--from <url>', 'sqlite:<path> or postgres://<user>:<password>@<host>/<database>')
    .requiredOption(
      '--to <url>',
      'the same forms; a missing file is created. The password can also come from PGPASSWORD',
    )
    .action(run)
}
