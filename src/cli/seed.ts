import type { Command } from 'commander'
import { loadConfig } from '../config/config.ts'
import { integer, type Reader, SettingError } from '../config/readers.ts'
import { hash } from '../passwords/hashing-thread.ts'
import { canonicalPassword, PASSWORD_MAX_LENGTH } from '../passwords/policy.ts'
import { openSeedStore } from '../storage/open.ts'
import type { SeedStore } from '../storage/seed.ts'
import { Refusal } from './failure.ts'
import { option, type StoreOptions, storeCommand, words } from './options.ts'
import { count, print, tell } from './output.ts'
import { progress, STOPPED, stopSignal } from './progress.ts'
import { type SeedPlan, seedAccounts } from './seed-users.ts'
import { environment, settings } from './store.ts'
import type { TokenFile } from './token-file.ts'

const MAX_USERS = 100_000_000
const PASSWORD = 'seed password 1'
const PASSWORD_MIN_LENGTH = 8

interface SeedOptions extends StoreOptions {
  readonly users: number
  readonly tokens?: string
  readonly password: string
  readonly force?: boolean
}

const password: Reader<string> = (text = '') => {
  const { length } = [...text]
  if (length < PASSWORD_MIN_LENGTH || length > PASSWORD_MAX_LENGTH)
    throw new SettingError(`must have ${PASSWORD_MIN_LENGTH} to ${PASSWORD_MAX_LENGTH} characters`)
  return text
}

interface SeedReport {
  readonly users: number
  readonly added: number
  readonly tokens: number
  readonly complete: boolean
}

const fill = async (
  store: SeedStore,
  tokenFile: TokenFile | null,
  plan: SeedPlan,
  idle: number,
): Promise<SeedReport> => {
  const signal = stopSignal()
  const tellProgress = progress()
  const report = { users: 0, added: 0, tokens: 0 }
  for (const accounts of seedAccounts(plan)) {
    if (signal.aborted) return { ...report, complete: false }
    const { added, sessions } = await store.add(accounts, idle)
    tokenFile?.write(sessions)
    report.users += accounts.length
    report.added += added
    report.tokens += sessions.length
    tellProgress(report.users, plan.users)
  }
  await store.finish()
  return { ...report, complete: true }
}

const seed = async ({ users, tokens: file, password, force, ...options }: SeedOptions): Promise<void> => {
  const { NODE_ENV, DATABASE_URL, SESSION_LIFETIME, SESSION_IDLE } = settings(options)
  if (NODE_ENV === 'production' && !force)
    throw new Refusal(
      'NODE_ENV is production, where accounts with a known password do not belong; --force adds them there',
    )
  const config = file === undefined ? null : loadConfig(environment(options))
  const store = await openSeedStore(DATABASE_URL)
  let tokenFile: TokenFile | null = null
  try {
    if (file !== undefined && config !== null) {
      const { createTokenFile } = await import('./token-file.ts')
      tokenFile = createTokenFile(file, config)
    }
    const limits = tokenFile && { lifetime: SESSION_LIFETIME, idle: SESSION_IDLE }
    const plan = { users, passwordHash: hash(canonicalPassword(password)), limits }
    const report = await fill(store, tokenFile, plan, SESSION_IDLE)
    print(options.json, report, [
      `${count(report.added, 'user')} added, ${count(report.users - report.added, 'was', 'were')} there already`,
      ...(tokenFile ? [`${count(report.tokens, 'access token')} in ${file}`] : []),
    ])
    if (report.complete) return
    tell(STOPPED)
    process.exitCode = 1
  } finally {
    tokenFile?.close()
    await store.close()
  }
}

export const seedCommand = (program: Command): void => {
  storeCommand(
    program,
    'seed',
    'Add users for load tests: user1@seed.example and so on, all with one password; run again, those that are missing',
  )
    .addOption(
      option('--users <number>', 'how many there are to be', integer(0, 1, MAX_USERS)).makeOptionMandatory(),
    )
    .addOption(
      option(
        '--tokens <file>',
        'open a session for each, and write their access tokens there, one a line',
        words,
      ),
    )
    .addOption(option('--password <password>', 'of those who are added', password).default(PASSWORD))
    .option('--force', 'also where NODE_ENV is production')
    .action(seed)
}
