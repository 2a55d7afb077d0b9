/** The only reader of the environment: every setting, its default and its check, in one table. */
import { readFileSync } from 'node:fs'
import {
  database,
  duration,
  integer,
  networks,
  oneOf,
  origins,
  type Reader,
  SettingFault,
  secret,
  text,
  workers,
} from './settings.ts'
import type { StorageLocation } from './storage/open.ts'

export const SETTINGS = {
  HOST: text('127.0.0.1'),
  PORT: integer(3000, 0, 65_535),
  DATABASE_URL: database('sqlite:data/gatehouse.db'),
  DATABASE_CONNECTIONS: integer(10, 1, 1_000),
  WORKERS: workers,
  ADMIN_KEY: secret(16),
  ADMIN_KEY_PREVIOUS: secret(16),
  JWT_SECRET: secret(32),
  JWT_SECRET_PREVIOUS: secret(32),
  NODE_ENV: oneOf('development', 'production', 'test'),
  LOG_LEVEL: oneOf('info', 'fatal', 'error', 'warn', 'debug', 'trace', 'silent'),
  LOG_REQUESTS: oneOf('off', 'on'),
  TRUST_PROXY: networks,
  ALLOWED_ORIGINS: origins,
  SESSION_LIFETIME: duration('30d', '1s'),
  SESSION_IDLE: duration('10d', '1s'),
  PASSWORD_MIN_LENGTH: integer(8, 8, 128),
  DRAIN_DELAY: duration('1s'),
} satisfies Record<string, Reader<unknown>>

/** Secrets can also be named by file, as container platforms mount them: `ADMIN_KEY_FILE=/run/secrets/admin-key`. */
export const FILE_SETTINGS = [
  'DATABASE_URL',
  'ADMIN_KEY',
  'ADMIN_KEY_PREVIOUS',
  'JWT_SECRET',
  'JWT_SECRET_PREVIOUS',
] as const

type Values = { [Name in keyof typeof SETTINGS]: ReturnType<(typeof SETTINGS)[Name]> }
type Environment = Readonly<Record<string, string | undefined>>

export interface Config {
  readonly host: string
  readonly port: number
  /** Processes that share the port. */
  readonly workers: number
  readonly storage: StorageLocation
  /** Accepted admin keys, the current one first. Empty: every admin route answers 401. */
  readonly adminKeys: readonly string[]
  /** The secret that signs access tokens, or the file in which the service keeps one that it makes at its first start. */
  readonly jwtSecret: { readonly value: string } | { readonly keptIn: string }
  /** A secret whose tokens are still accepted while keys rotate. */
  readonly jwtPreviousSecret: string | null
  readonly production: boolean
  readonly logLevel: Values['LOG_LEVEL']
  readonly logRequests: boolean
  readonly trustedProxies: readonly string[]
  readonly allowedOrigins: readonly string[]
  /** Milliseconds after which a session ends whatever happens. */
  readonly sessionLifetime: number
  /** Milliseconds without a request after which a session ends. */
  readonly sessionIdle: number
  readonly passwordMinLength: number
  /** Milliseconds between the stop signal and the moment from which new connections are refused. */
  readonly drainDelay: number
}

/** All that is wrong with the environment, one line a fault. */
export class ConfigError extends Error {
  constructor(faults: readonly string[]) {
    super(`The configuration is not valid:\n${faults.map(fault => `  ${fault}`).join('\n')}`)
    this.name = 'ConfigError'
  }
}

const readFile = (file: string): string => {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    throw new SettingFault('names a file that cannot be read')
  }
}

/** An empty variable counts as absent: compose files and shells pass on `ADMIN_KEY=` for an unset one. */
const given = (environment: Environment, name: string): string | undefined =>
  environment[name]?.trim() || undefined

const attempt = (faults: string[], name: string, read: () => unknown): unknown => {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof SettingFault)) throw error
    faults.push(`${name} ${error.message}`)
    return undefined
  }
}

/** On the embedded store a missing secret is made once and kept beside the data; instances that share one must be given it. */
const secretOf = ({ JWT_SECRET, DATABASE_URL }: Partial<Values>): Config['jwtSecret'] | null => {
  if (JWT_SECRET) return { value: JWT_SECRET }
  if (DATABASE_URL?.engine === 'postgres') return null
  return { keptIn: `${DATABASE_URL?.file}.jwt-secret` }
}

/**
 * Reads and checks every setting.
 * @throws {ConfigError} naming every fault at once; values of secrets are never part of it.
 */
export const loadConfig = (environment: Environment): Config => {
  const faults: string[] = []
  const values: Record<string, unknown> = {}
  for (const [name, read] of Object.entries(SETTINGS)) {
    const fileName = `${name}_FILE`
    const file = (FILE_SETTINGS as readonly string[]).includes(name)
      ? given(environment, fileName)
      : undefined
    const direct = given(environment, name)
    if (file !== undefined && direct !== undefined) faults.push(`${name} is given twice, also as ${fileName}`)
    values[name] = attempt(faults, file === undefined ? name : fileName, () =>
      read(file === undefined ? direct : readFile(file)),
    )
  }
  const v = values as Values
  if (v.ADMIN_KEY_PREVIOUS && !v.ADMIN_KEY) faults.push('ADMIN_KEY_PREVIOUS is of no use without ADMIN_KEY')
  if (v.JWT_SECRET_PREVIOUS && !v.JWT_SECRET)
    faults.push('JWT_SECRET_PREVIOUS is of no use without JWT_SECRET')
  if (v.DATABASE_URL?.engine === 'sqlite' && v.WORKERS > 1)
    faults.push('WORKERS can only be 1 with SQLite: processes that share its file empty each other’s caches')
  const jwtSecret = secretOf(v)
  if (jwtSecret === null)
    faults.push('JWT_SECRET is needed with PostgreSQL: every instance has to sign with the same one')
  if (faults.length > 0 || jwtSecret === null) throw new ConfigError(faults)

  return Object.freeze({
    host: v.HOST,
    port: v.PORT,
    workers: v.WORKERS,
    storage: { ...v.DATABASE_URL, connections: v.DATABASE_CONNECTIONS },
    adminKeys: [v.ADMIN_KEY, v.ADMIN_KEY_PREVIOUS].filter(key => key !== null),
    jwtSecret,
    jwtPreviousSecret: v.JWT_SECRET_PREVIOUS,
    production: v.NODE_ENV === 'production',
    logLevel: v.LOG_LEVEL,
    logRequests: v.LOG_REQUESTS === 'on',
    trustedProxies: v.TRUST_PROXY,
    allowedOrigins: v.ALLOWED_ORIGINS,
    sessionLifetime: v.SESSION_LIFETIME,
    sessionIdle: v.SESSION_IDLE,
    passwordMinLength: v.PASSWORD_MIN_LENGTH,
    drainDelay: v.DRAIN_DELAY,
  })
}
