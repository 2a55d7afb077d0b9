/** Users who look like users, for load tests. */

import type { Command } from 'commander'
import { newSession, type SessionLimits } from '../auth/session.ts'
import { loadConfig } from '../config/config.ts'
import { integer, type Reader, SettingError } from '../config/readers.ts'
import { newId } from '../ids.ts'
import { hash } from '../passwords/hashing-thread.ts'
import { canonicalPassword, PASSWORD_MAX_LENGTH } from '../passwords/policy.ts'
import { openSeedStore } from '../storage/open.ts'
import type { SeedAccount, SeedStore } from '../storage/seed.ts'
import { Refusal } from './failure.ts'
import type { TokenFile } from './files.ts'
import { option, type StoreOptions, storeCommand, words } from './options.ts'
import { count, print, progress, STOPPED, stopSignal, tell } from './output.ts'
import { environment, settings } from './store.ts'

/** Users of one transaction: some hundred milliseconds at most, for which other writers may have to wait. */
const SLICE = 5_000

/** Milliseconds over which the timestamps of sign-up are spread. */
const YEAR = 365 * 86_400_000

const FIRST_NAMES =
  'Ada Amir Ann Björn Carlos Chloé Dana Elif Emma Grace Hana Ivan Jamal Kenji Łucja Maria Noah Olga Priya Rosa Søren Wei Zoë'.split(
    ' ',
  )

const LAST_NAMES =
  'Abe Ahmed Brown Costa Dubois Eriksson Fischer García Haddad Ito Jones Kaya Keeper Kowalska Lee Martin Novák Okafor'
    .concat(' Olsen Patel Rossi Silva Smith Suzuki Tanaka Tran Wang Weiß Yılmaz')
    .split(' ')

/** As many first names as a prime, and as many last names as another one: every pair of them occurs. */
const nameOf = (names: readonly string[], number: number): string | null =>
  names[number % names.length] ?? null

export interface SeedPlan {
  readonly users: number
  readonly passwordHash: string
  /** What sessions are opened by; `null` opens none. */
  readonly limits: SessionLimits | null
}

/** The later the number, the later the sign-up: ids go up with both, and so are added at the end of every index. */
const account = (number: number, { users, passwordHash, limits }: SeedPlan, now: number): SeedAccount => {
  const createdAt = now - Math.floor((YEAR * (users - number)) / users)
  const user = {
    id: newId(createdAt),
    email: `user${number}@seed.example`,
    passwordHash,
    firstName: nameOf(FIRST_NAMES, number),
    lastName: nameOf(LAST_NAMES, number),
    emailVerified: true,
    disabled: false,
    createdAt,
    updatedAt: createdAt,
  }
  return { user, session: limits && newSession(user.id, now, limits) }
}

/** `user1@seed.example` and so on, a transaction's at a time. */
export const seedAccounts = function* (plan: SeedPlan): Generator<readonly SeedAccount[]> {
  for (let first = 1; first <= plan.users; first += SLICE) {
    const length = Math.min(SLICE, plan.users - first + 1)
    const now = Date.now()
    yield Array.from({ length }, (_, index) => account(first + index, plan, now))
  }
}

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
      const { createTokenFile } = await import('./files.ts')
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
