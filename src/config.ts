/** What the service is configured to be: frozen, typed, checked as a whole. */
import { keptSecretFile } from './auth/signing-keys.ts'
import { type Environment, readSettings, type Values } from './settings.ts'
import type { StorageLocation } from './storage/open.ts'

export interface Config {
  readonly host: string
  readonly port: number
  /** Processes that share the port. */
  readonly workers: number
  readonly storage: StorageLocation
  /** Connections to PostgreSQL at once, besides the one that listens for changes. */
  readonly databaseConnections: number
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

/** On the embedded store a missing secret is made once and kept beside the data; instances that share one must be given it. */
const secretOf = ({ JWT_SECRET, DATABASE_URL }: Partial<Values>): Config['jwtSecret'] | null => {
  if (JWT_SECRET) return { value: JWT_SECRET }
  if (DATABASE_URL?.engine === 'postgres') return null
  return { keptIn: keptSecretFile(DATABASE_URL?.file ?? '') }
}

/**
 * Reads and checks every setting.
 * @throws {ConfigError} naming every fault at once; values of secrets are never part of it.
 */
export const loadConfig = (environment: Environment): Config => {
  const { values: v, faults } = readSettings(environment)
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
    storage: v.DATABASE_URL,
    databaseConnections: v.DATABASE_CONNECTIONS,
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
