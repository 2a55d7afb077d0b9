/** What the service is configured to be: frozen, typed, checked as a whole. */
import { isIPv6 } from 'node:net'
import { dirname, join } from 'node:path'
import { type SecretSource, secretFileOf } from '../auth/secret-file.ts'
import type { StorageLocation } from '../storage/open.ts'
import { misspelledSettings } from './misspelled-settings.ts'
import { weakness } from './secret-strength.ts'
import { type Environment, readSettings, type Settings, type Values } from './settings.ts'

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
  readonly jwtSecret: SecretSource
  /** A secret whose tokens are still accepted while keys rotate. */
  readonly jwtPreviousSecret: string | null
  readonly production: boolean
  readonly logLevel: Values['LOG_LEVEL']
  readonly logRequests: boolean
  readonly trustedProxies: readonly string[]
  readonly allowedOrigins: readonly string[]
  /** Whether it is limited how often something is asked for. */
  readonly rateLimit: boolean
  /** Whether the service describes itself, at /docs and /openapi.json. */
  readonly docs: boolean
  /** Milliseconds after which a session ends whatever happens. */
  readonly sessionLifetime: number
  /** Milliseconds without a request after which a session ends. */
  readonly sessionIdle: number
  /** Milliseconds that the audit log keeps an event. */
  readonly eventsKept: number
  readonly passwordMinLength: number
  /** Whether nobody signs in before their e-mail is verified, and no sign-up tells which addresses have accounts. */
  readonly requireEmailVerification: boolean
  readonly mail: {
    /** The SMTP server, with its credentials; `off`: nothing is sent; `null`: mails become files in `outbox`. */
    readonly url: string | null
    /** The sender: `Name <address>`, or the address alone. */
    readonly from: string
    /** A folder; made with the first mail. */
    readonly outbox: string
  }
  /** Where clients reach the service: an origin, perhaps with a path, without a last slash. */
  readonly publicUrl: string
  /** The web application that people are sent to. */
  readonly webUrl: string
  /** Milliseconds between the stop signal and the timestamp from which new connections are refused. */
  readonly drainDelay: number
  /** What the operator should know of the settings although they are valid: a sentence each. */
  readonly warnings: readonly string[]
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
  return { file: secretFileOf(DATABASE_URL?.file ?? '') }
}

const SECRETS = ['ADMIN_KEY', 'ADMIN_KEY_PREVIOUS', 'JWT_SECRET', 'JWT_SECRET_PREVIOUS'] as const

/** A sentence for each secret that can be guessed, without the secret. */
const weakSecrets = ({ values, variables }: Settings): string[] =>
  SECRETS.flatMap(name => {
    const secret = values[name]
    const reason = secret ? weakness(secret) : null
    return reason === null ? [] : [`${variables[name]} ${reason}: make a key with npm run cli -- keys new`]
  })

/** What is allowed, and is seldom what the operator wants. */
const warningsOf = (v: Values, publicUrl: string): string[] => [
  ...(v.ADMIN_KEY === null ? ['ADMIN_KEY is not set: every admin route answers 401'] : []),
  ...(v.MAIL_URL === 'off' ? ['MAIL_URL is off: nobody is mailed anything'] : []),
  ...(v.RATE_LIMIT === 'off'
    ? ['RATE_LIMIT is off: anybody may try passwords and sign up without limit']
    : []),
  ...(v.NODE_ENV === 'production' && v.PUBLIC_URL === null
    ? [`PUBLIC_URL is not set: links in mails lead to ${publicUrl}`]
    : []),
]

/** The service as it is reached from the machine that it runs on. */
const localUrl = (host: string, port: number): string => {
  const everywhere = host === '0.0.0.0' || host === '::'
  return `http://${everywhere ? 'localhost' : isIPv6(host) ? `[${host}]` : host}:${port}`
}

const outboxOf = (storage: StorageLocation): string =>
  join(storage.engine === 'sqlite' ? dirname(storage.file) : 'data', 'outbox')

/**
 * Reads and checks every setting.
 * @throws {ConfigError} naming every fault at once; values of secrets are never part of it.
 */
export const loadConfig = (environment: Environment): Config => {
  const settings = readSettings(environment)
  const { values: v, variables, faults } = settings
  const weak = weakSecrets(settings)
  if (v.NODE_ENV === 'production') faults.push(...weak)
  if (v.ADMIN_KEY_PREVIOUS && !v.ADMIN_KEY) faults.push('ADMIN_KEY_PREVIOUS is of no use without ADMIN_KEY')
  if (v.JWT_SECRET_PREVIOUS && !v.JWT_SECRET)
    faults.push('JWT_SECRET_PREVIOUS is of no use without JWT_SECRET')
  if (v.REQUIRE_EMAIL_VERIFICATION === 'true' && v.MAIL_URL === 'off')
    faults.push('MAIL_URL cannot be off with REQUIRE_EMAIL_VERIFICATION: nobody could sign in')
  if (v.DATABASE_URL?.engine === 'sqlite' && v.WORKERS > 1)
    faults.push('WORKERS can only be 1 with SQLite: processes that share its file empty each other’s caches')
  // The default gives way to a shorter lifetime.
  const sessionIdle = variables.SESSION_IDLE ? v.SESSION_IDLE : Math.min(v.SESSION_IDLE, v.SESSION_LIFETIME)
  if (sessionIdle > v.SESSION_LIFETIME)
    faults.push('SESSION_IDLE must not be longer than SESSION_LIFETIME, at which every session ends')
  const jwtSecret = secretOf(v)
  if (jwtSecret === null)
    faults.push('JWT_SECRET is needed with PostgreSQL: every instance has to sign with the same one')
  if (faults.length > 0 || jwtSecret === null) throw new ConfigError(faults)

  const publicUrl = v.PUBLIC_URL ?? localUrl(v.HOST, v.PORT)
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
    rateLimit: v.RATE_LIMIT === 'on',
    docs: v.DOCS === 'on',
    sessionLifetime: v.SESSION_LIFETIME,
    sessionIdle,
    eventsKept: v.EVENTS_KEPT,
    passwordMinLength: v.PASSWORD_MIN_LENGTH,
    requireEmailVerification: v.REQUIRE_EMAIL_VERIFICATION === 'true',
    mail: { url: v.MAIL_URL, from: v.MAIL_FROM, outbox: outboxOf(v.DATABASE_URL) },
    publicUrl,
    webUrl: v.WEB_URL ?? (v.DOCS === 'on' ? `${publicUrl}/docs` : publicUrl),
    drainDelay: v.DRAIN_DELAY,
    warnings: [...weak, ...misspelledSettings(environment), ...warningsOf(v, publicUrl)],
  })
}
