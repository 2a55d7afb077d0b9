/** `seed`: realistic users for load tests, and files with their access tokens. */
import { type Command, Option } from 'commander'
import { integer, oneOf, type Reader, SettingError, serviceUrl } from '#base/settings/readers'
import { AccessTokens } from '#core/auth/access-tokens'
import { compare, hash } from '#core/passwords/hashing-thread'
import { canonicalPassword, PASSWORD_MAX_LENGTH } from '#core/passwords/policy'
import { openSeedStore } from '#core/store/open'
import type { SeedAccount, SeededUser, SeedStore } from '#core/store/seed'
import { CommandError, UsageError } from '#feature/commands/failure'
import { nonEmpty, option, type StoreOptions, storeCommand } from '#feature/commands/options'
import {
  count,
  formatNumber,
  print,
  printStatus,
  progress,
  STOPPED,
  stopSignal,
} from '#feature/commands/output'
import { allFeatures } from '#features/built-in'
import { type Config, loadConfig } from '../config/config.ts'
import { type SeedPlan, seedAccounts } from './seed-accounts.ts'
import { removeSeeded } from './seed-removal.ts'
import { environment, settings, withStore } from './store.ts'
import { FORMAT_NAMES, type FormatName, type SeededToken, TokenFiles } from './token-files.ts'

const MAX_USERS = 100_000_000
const MAX_SHARDS = 256
const MAX_RANDOM_SEED = 2 ** 32 - 1
const PASSWORD = 'seed password 1'
const PASSWORD_MIN_LENGTH = 8

/** Connections to PostgreSQL with which accounts are removed. */
const REMOVAL_CONNECTIONS = 4

interface SeedOptions extends StoreOptions {
  readonly users?: number
  readonly tokens?: string
  readonly format?: FormatName
  readonly url?: string
  readonly shards?: number
  readonly password?: string
  readonly randomSeed?: number
  readonly remove?: boolean
  readonly force?: boolean
}

const password: Reader<string> = text => {
  const { length } = [...text]
  if (length < PASSWORD_MIN_LENGTH || length > PASSWORD_MAX_LENGTH)
    throw new SettingError(`must have ${PASSWORD_MIN_LENGTH} to ${PASSWORD_MAX_LENGTH} characters`)
  return text
}

/** @throws {UsageError} */
const assertUsable = ({ tokens, format, url, shards, users = 0 }: SeedOptions): void => {
  const useless = Object.entries({ '--format': format, '--url': url, '--shards': shards })
  for (const [name, value] of useless)
    if (value !== undefined && tokens === undefined) throw new UsageError(`${name} needs --tokens <file>`)
  if (tokens?.endsWith('/')) throw new UsageError('--tokens must be a file, not a folder')
  if (url !== undefined && format !== 'vegeta') throw new UsageError('--url needs --format vegeta')
  if (shards !== undefined && shards > users) throw new UsageError('--shards must not be higher than --users')
}

/** Makes what the files contain of a user. */
const tokenMaker = (config: Config, plain: string, plan: SeedPlan) => {
  const tokens = AccessTokens.from(config)
  /** Whether the given password matches, by hash. Accounts of one run share a hash. */
  const matches = new Map([[plan.passwordHash, true]])
  const isPassword = (encoded: string): boolean => {
    const known = matches.get(encoded)
    if (known !== undefined) return known
    const isMatch = compare(canonicalPassword(plain), encoded) === true
    matches.set(encoded, isMatch)
    return isMatch
  }
  return (
    { user: { email } }: SeedAccount,
    seeded: SeededUser | null,
    needsPassword: boolean,
  ): SeededToken => {
    if (seeded === null) return { id: null, email, password: null, token: null }
    const { id, passwordHash, session } = seeded
    return {
      id,
      email,
      password: needsPassword && passwordHash !== null && isPassword(passwordHash) ? plain : null,
      token: session === null ? null : tokens.issue(session),
    }
  }
}

interface SeedReport {
  readonly users: number
  readonly added: number
  /** Tokens in the files. */
  readonly tokens: number
  readonly complete: boolean
}

type WriteTokens = (
  accounts: readonly SeedAccount[],
  users: readonly (SeededUser | null)[],
) => Promise<number>

/** @param writeTokens returns how many tokens it has written. */
const fill = async (
  store: SeedStore,
  plan: SeedPlan,
  idle: number,
  writeTokens: WriteTokens | null,
): Promise<SeedReport> => {
  const signal = stopSignal()
  const reportProgress = progress()
  const report = { users: 0, added: 0, tokens: 0 }
  for (const accounts of seedAccounts(plan)) {
    if (signal.aborted) return { ...report, tokens: 0, complete: false }
    const { added, users } = await store.add(accounts, idle)
    if (writeTokens !== null) report.tokens += await writeTokens(accounts, users)
    report.users += accounts.length
    report.added += added
    reportProgress(report.users, plan.users)
  }
  await store.finish()
  return { ...report, complete: true }
}

const tokenLines = ({ users, tokens }: SeedReport, files: TokenFiles): string[] => {
  const { paths } = files
  const place = paths.length === 1 ? paths[0] : `${paths.length} files, ${paths[0]} to ${paths.at(-1)}`
  if (tokens < users)
    printStatus(`${count(users - tokens, 'user')} without a token, because they are disabled or were removed`)
  return [`${count(tokens, 'access token')} in ${place}`]
}

const add = async (options: SeedOptions): Promise<void> => {
  const { users, tokens: file, format = 'tokens', shards = null, randomSeed = null } = options
  if (users === undefined) throw new UsageError('--users <number> is needed')
  assertUsable(options)
  const { DATABASE_URL, SESSION_LIFETIME, SESSION_IDLE } = settings(options)
  const config = file === undefined ? null : loadConfig(environment(options), allFeatures())
  const store = await openSeedStore(DATABASE_URL, allFeatures())
  let files: TokenFiles | null = null
  try {
    const limits = config && { lifetime: SESSION_LIFETIME, idle: SESSION_IDLE }
    const { password: plain = PASSWORD } = options
    const plan = { users, passwordHash: hash(canonicalPassword(plain)), limits, randomSeed }
    let writeTokens: WriteTokens | null = null
    if (file !== undefined && config !== null) {
      const opened = await TokenFiles.open({ file, format, shards, url: options.url ?? config.publicUrl })
      files = opened
      const make = tokenMaker(config, plain, plan)
      writeTokens = async (accounts, seeded) => {
        const made = accounts.map((account, index) =>
          make(account, seeded[index] ?? null, opened.hasPasswords),
        )
        await opened.write(made)
        return made.filter(({ token }) => token !== null).length
      }
    }
    const report = await fill(store, plan, SESSION_IDLE, writeTokens)
    if (report.complete) await files?.commit()
    print(options.json, report, [
      `${count(report.added, 'user')} added, ${formatNumber(report.users - report.added)} already existed`,
      ...(files !== null && report.complete ? tokenLines(report, files) : []),
    ])
    stopUnless(report)
  } finally {
    await files?.discard()
    await store.close()
  }
}

const stopUnless = ({ complete }: { readonly complete: boolean }): void => {
  if (complete) return
  printStatus(STOPPED)
  process.exitCode = 1
}

const remove = async ({ users: last = MAX_USERS, json, ...options }: SeedOptions): Promise<void> =>
  withStore(
    options,
    async ({ users }) => {
      const seedStore = await openSeedStore(settings(options).DATABASE_URL, allFeatures())
      try {
        const report = await removeSeeded(seedStore, users, last)
        await seedStore.finish()
        print(json, report, [`${count(report.removed, 'user')} removed`])
        stopUnless(report)
      } finally {
        await seedStore.close()
      }
    },
    REMOVAL_CONNECTIONS,
  )

const seed = async (options: SeedOptions): Promise<void> => {
  if (settings(options).NODE_ENV === 'production' && !options.force)
    throw new CommandError(
      options.remove
        ? 'NODE_ENV is production: --force removes the accounts of load tests anyway'
        : 'NODE_ENV is production: accounts with a known password do not belong there; --force adds them anyway',
    )
  return options.remove ? remove(options) : add(options)
}

export const seedCommand = (program: Command): void => {
  storeCommand(
    program,
    'seed',
    'Add users for load tests: user1@seed.example and so on, all with one password; a repeated run adds missing users',
  )
    .addOption(option('--users <number>', 'the number of users', integer(1, MAX_USERS)))
    .addOption(
      option(
        '--tokens <file>',
        'open a session for each, and write their access tokens to this file, in the order of the users',
        nonEmpty,
      ),
    )
    .addOption(option('--format <format>', `of the file: ${FORMAT_NAMES.join(', ')}`, oneOf(...FORMAT_NAMES)))
    .addOption(option('--url <url>', 'the service of vegeta’s targets, in place of PUBLIC_URL', serviceUrl))
    .addOption(
      option(
        '--shards <number>',
        'the number of files to write, each with its share of the users',
        integer(1, MAX_SHARDS),
      ),
    )
    .addOption(
      option('--password <password>', `the password of added users, by default ${PASSWORD}`, password),
    )
    .addOption(
      option(
        '--random-seed <number>',
        'from which ids and dates are derived: equal in every run on an empty database',
        integer(0, MAX_RANDOM_SEED),
      ),
    )
    .addOption(
      new Option(
        '--remove',
        'remove the users instead, with all their data; without --users all of them',
      ).conflicts(['tokens', 'format', 'url', 'shards', 'password', 'randomSeed']),
    )
    .option('--force', 'also if NODE_ENV is production')
    .action(seed)
}
