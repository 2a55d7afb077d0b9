/** `seed`: realistic users for load tests, and a file with their access tokens. */

import { closeSync, fchmodSync, openSync, writeSync } from 'node:fs'
import type { Command } from 'commander'
import { AccessTokens } from '../auth/access-tokens.ts'
import { newSession, type SessionLimits } from '../auth/session.ts'
import { allFeatures } from '../built-in-features.ts'
import { type Config, loadConfig } from '../config/config.ts'
import { integer, type Reader, SettingError } from '../config/readers.ts'
import { newId } from '../ids.ts'
import { hash } from '../passwords/hashing-thread.ts'
import { canonicalPassword, PASSWORD_MAX_LENGTH } from '../passwords/policy.ts'
import { openSeedStore } from '../storage/open.ts'
import type { SeedAccount, SeedSession, SeedStore } from '../storage/seed.ts'
import { NO_METADATA } from '../users/metadata.ts'
import { NO_ROLES } from '../users/roles.ts'
import { CommandError, withFile } from './failure.ts'
import { nonEmpty, option, type StoreOptions, storeCommand } from './options.ts'
import { count, formatNumber, print, printStatus, progress, STOPPED, stopSignal } from './output.ts'
import { environment, settings } from './store.ts'

/** Users per transaction. It takes at most some hundred milliseconds, for which other writers may wait. */
const SLICE = 5_000

/** Milliseconds. Sign-ups are spread over a year. */
const YEAR = 365 * 86_400_000

const FIRST_NAMES =
  'Ada Amir Ann Björn Carlos Chloé Dana Elif Emma Grace Hana Ivan Jamal Kenji Łucja Maria Noah Olga Priya Rosa Søren Wei Zoë'.split(
    ' ',
  )

const LAST_NAMES =
  'Abe Ahmed Brown Costa Dubois Eriksson Fischer García Haddad Ito Jones Kaya Keeper Kowalska Lee Martin Novák Okafor'
    .concat(' Olsen Patel Rossi Silva Smith Suzuki Tanaka Tran Wang Weiß Yılmaz')
    .split(' ')

/** The numbers of first and last names are different primes, so that every pair occurs. */
const nameOf = (names: readonly string[], number: number): string | null =>
  names[number % names.length] ?? null

export interface SeedPlan {
  readonly users: number
  readonly passwordHash: string
  /** The lifetime of the sessions to open; `null` opens none. */
  readonly limits: SessionLimits | null
}

/** Ids increase with the number, like the times of sign-up, so that rows are appended at the end of each index. */
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
    roles: NO_ROLES,
    userMetadata: NO_METADATA,
    appMetadata: NO_METADATA,
    createdAt,
    updatedAt: createdAt,
  }
  return { user, session: limits && newSession(user.id, now, limits) }
}

/** Yields `user1@seed.example` and so on, in slices of one transaction. */
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

const password: Reader<string> = text => {
  const { length } = [...text]
  if (length < PASSWORD_MIN_LENGTH || length > PASSWORD_MAX_LENGTH)
    throw new SettingError(`must have ${PASSWORD_MIN_LENGTH} to ${PASSWORD_MAX_LENGTH} characters`)
  return text
}

/** Access tokens, one per line, readable by the file's owner only: a token grants access to its user's account. */
interface TokenFile {
  write(sessions: readonly SeedSession[]): void
  close(): void
}

const openTokens = (file: string): number => {
  try {
    return openSync(file, 'w', 0o600)
  } catch (error) {
    throw withFile(file, error)
  }
}

/** @throws {Error} if the file cannot be written, or the service's secret cannot be read. */
const createTokenFile = (file: string, config: Config): TokenFile => {
  const tokens = AccessTokens.from(config)
  const handle = openTokens(file)
  // An existing file keeps its mode.
  fchmodSync(handle, 0o600)
  return {
    write: sessions => void writeSync(handle, sessions.map(session => `${tokens.issue(session)}\n`).join('')),
    close: () => closeSync(handle),
  }
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
  const reportProgress = progress()
  const report = { users: 0, added: 0, tokens: 0 }
  for (const accounts of seedAccounts(plan)) {
    if (signal.aborted) return { ...report, complete: false }
    const { added, sessions } = await store.add(accounts, idle)
    tokenFile?.write(sessions)
    report.users += accounts.length
    report.added += added
    report.tokens += sessions.length
    reportProgress(report.users, plan.users)
  }
  await store.finish()
  return { ...report, complete: true }
}

const seed = async ({ users, tokens: file, password, force, ...options }: SeedOptions): Promise<void> => {
  const { NODE_ENV, DATABASE_URL, SESSION_LIFETIME, SESSION_IDLE } = settings(options)
  if (NODE_ENV === 'production' && !force)
    throw new CommandError(
      'NODE_ENV is production: accounts with a known password do not belong there; --force adds them anyway',
    )
  const config = file === undefined ? null : loadConfig(environment(options))
  const store = await openSeedStore(DATABASE_URL, allFeatures())
  let tokenFile: TokenFile | null = null
  try {
    if (file !== undefined && config !== null) tokenFile = createTokenFile(file, config)
    const limits = tokenFile && { lifetime: SESSION_LIFETIME, idle: SESSION_IDLE }
    const plan = { users, passwordHash: hash(canonicalPassword(password)), limits }
    const report = await fill(store, tokenFile, plan, SESSION_IDLE)
    print(options.json, report, [
      `${count(report.added, 'user')} added, ${formatNumber(report.users - report.added)} already existed`,
      ...(tokenFile ? [`${count(report.tokens, 'access token')} in ${file}`] : []),
    ])
    if (report.complete) return
    printStatus(STOPPED)
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
    'Add users for load tests: user1@seed.example and so on, all with one password; a repeated run adds missing users',
  )
    .addOption(option('--users <number>', 'the number of users', integer(1, MAX_USERS)).makeOptionMandatory())
    .addOption(
      option(
        '--tokens <file>',
        'open a session for each, and write their access tokens to this file, one per line',
        nonEmpty,
      ),
    )
    .addOption(option('--password <password>', 'the password of added users', password).default(PASSWORD))
    .option('--force', 'also if NODE_ENV is production')
    .action(seed)
}
