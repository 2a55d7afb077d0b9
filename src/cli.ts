/** The command line's process edge: arguments in, signals in, sentences and an exit code out. */
import { existsSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { keptSecretFile } from './auth/signing-keys.ts'
import { SettingFault } from './setting-readers.ts'
import { SETTINGS } from './settings.ts'
import { type CopyReport, copy } from './storage/copy/copy.ts'
import { CopyFault } from './storage/copy/fault.ts'

/** Milliseconds between two lines of progress. */
const PROGRESS_INTERVAL = 1_000

const tell = (line: string): void => void process.stderr.write(`${line}\n`)

const count = (number: number): string => number.toLocaleString('en')

/** Arguments may have passwords, also in the wrong place: of those that are not plain words none is repeated. */
const withoutArguments = (text: string): string =>
  process.argv
    .slice(2)
    .filter(argument => !/^[a-z-]*$/.test(argument))
    .reduce((rest, argument) => rest.replaceAll(argument, '…'), text)

const location = (option: string, text: string) => {
  try {
    return SETTINGS.DATABASE_URL(text)
  } catch (error) {
    throw error instanceof SettingFault ? new CopyFault(`${option} ${error.message}`) : error
  }
}

const progress = () => {
  let last = 0
  return (done: number, total: number): void => {
    if (done < total && Date.now() - last < PROGRESS_INTERVAL) return
    last = Date.now()
    tell(`${count(done)} of ${count(total)} users`)
  }
}

/** A terminal's Ctrl-C arrives twice under npm, which passes it on: so the second one ends nothing either. */
const stopSignal = (): AbortSignal => {
  const stop = new AbortController()
  const onSignal = (): void => {
    if (!stop.signal.aborted) tell('Stopping after the users that are being written')
    stop.abort()
  }
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal)
  return stop.signal
}

const summary = (report: CopyReport, file: string): string => {
  const { total, added, changed, unchanged, kept, conflicts, sessions } = report
  const secretFile = keptSecretFile(file)
  return [
    `${count(total)} users in the source: ${count(added)} copied, ${count(changed)} changed since and copied again, ` +
      `${count(unchanged)} unchanged, ${count(kept)} changed later in the target and left as they are there, ` +
      `${count(conflicts)} in conflict`,
    `${count(sessions)} sessions copied or brought up to date`,
    'Access tokens go on working where the service is given the secret that has signed them, as JWT_SECRET or JWT_SECRET_FILE' +
      (existsSync(secretFile) ? `; the one that it made for itself is kept in ${secretFile}` : ''),
  ].join('\n')
}

const runCopy = async ({ from, to }: { from: string; to: string }): Promise<void> => {
  const [source, target] = [location('--from', from), location('--to', to)]
  if (source.engine !== 'sqlite' || target.engine !== 'postgres') {
    throw new CopyFault('only from SQLite to PostgreSQL can be copied: --from sqlite:… --to postgres://…')
  }
  const report = await copy(source.file, target.url, { signal: stopSignal(), onProgress: progress() })
  process.stdout.write(`${summary(report, source.file)}\n`)
  for (const { user, holder } of report.told) {
    tell(`User ${user.id} was left out: user ${holder} of the target has the same e-mail`)
  }
  const untold = report.conflicts - report.told.length
  if (untold > 0) tell(`${count(untold)} more were left out for the same reason`)
  if (!report.complete) tell('Stopped before the end: run it again, and it copies what is missing')
  if (!report.complete || report.conflicts > 0) process.exitCode = 1
}

/** What the operator can mend is said in a sentence; what is a fault of the code has a stack. */
const explain = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  const mendable = error instanceof CopyFault || 'code' in error
  return mendable ? `Nothing more is copied: ${error.message}` : String(error.stack)
}

const program = new Command('gatehouse')
  .description('Tools for the operator of a Gatehouse service')
  .exitOverride()
  .configureOutput({ outputError: (text, write) => write(withoutArguments(text)) })

program
  .command('copy')
  .description(
    'Copies users and sessions from an SQLite file to a PostgreSQL database; run again, what is missing and what has changed',
  )
  .requiredOption('--from <url>', 'sqlite:<path of a file>, which is only read')
  .requiredOption(
    '--to <url>',
    'postgres://<user>:<password>@<host>/<database>; the password is also taken from PGPASSWORD',
  )
  .action(runCopy)

try {
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof CommanderError)) tell(withoutArguments(explain(error)))
  process.exitCode = error instanceof CommanderError ? error.exitCode : 1
}
