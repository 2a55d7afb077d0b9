/** Every setting of the environment, its default and its check, in one table; and how the environment is read by it. */
import { readFileSync } from 'node:fs'
import {
  database,
  duration,
  integer,
  mailbox,
  mailUrl,
  networks,
  oneOf,
  origins,
  pageUrl,
  type Reader,
  SettingError,
  secret,
  serviceUrl,
  text,
  workers,
} from './readers.ts'

export const SETTINGS = {
  HOST: text('127.0.0.1'),
  PORT: integer(3000, 0, 65_535),
  WORKERS: workers,
  DATABASE_URL: database('sqlite:data/gatehouse.db'),
  DATABASE_CONNECTIONS: integer(10, 1, 1_000),
  ADMIN_KEY: secret(16),
  ADMIN_KEY_PREVIOUS: secret(16),
  JWT_SECRET: secret(32),
  JWT_SECRET_PREVIOUS: secret(32),
  NODE_ENV: oneOf('development', 'production', 'test'),
  LOG_LEVEL: oneOf('info', 'fatal', 'error', 'warn', 'debug', 'trace', 'silent'),
  LOG_REQUESTS: oneOf('off', 'on'),
  TRUST_PROXY: networks,
  ALLOWED_ORIGINS: origins,
  RATE_LIMIT: oneOf('on', 'off'),
  DOCS: oneOf('on', 'off'),
  SESSION_LIFETIME: duration('30d', '1s'),
  SESSION_IDLE: duration('10d', '1s'),
  EVENTS_KEPT: duration('365d', '1d'),
  PASSWORD_MIN_LENGTH: integer(8, 8, 128),
  REQUIRE_EMAIL_VERIFICATION: oneOf('false', 'true'),
  MAIL_URL: mailUrl,
  MAIL_FROM: mailbox('Gatehouse <no-reply@localhost>'),
  PUBLIC_URL: serviceUrl,
  WEB_URL: pageUrl,
  DRAIN_DELAY: duration('1s'),
} satisfies Record<string, Reader<unknown>>

/** Secrets can also be named by file, as container platforms mount them: `ADMIN_KEY_FILE=/run/secrets/admin-key`. */
export const FILE_SETTINGS = [
  'DATABASE_URL',
  'ADMIN_KEY',
  'ADMIN_KEY_PREVIOUS',
  'JWT_SECRET',
  'JWT_SECRET_PREVIOUS',
  'MAIL_URL',
] as const

export type Values = { [Name in keyof typeof SETTINGS]: ReturnType<(typeof SETTINGS)[Name]> }
export type Environment = Readonly<Record<string, string | undefined>>

/**
 * What is surely a path, and not a secret or a URL that was given where a file is to be named: it starts as paths do, or has
 * a folder or an extension in lower case, where a random key would have other letters.
 */
const PATH = /^(?:(?:~|\.{1,2}|[A-Za-z]:)?[/\\].*|[a-z0-9._/-]*(?:\/[a-z0-9._-]+|\.[a-z]{1,5}))$/

const readFile = (file: string): string => {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    throw new SettingError(`names a file that cannot be read${PATH.test(file) ? `: ${file}` : ''} (${code})`)
  }
}

/** An empty variable counts as absent: compose files and shells pass on `ADMIN_KEY=` for an unset one. */
const given = (environment: Environment, name: string): string | undefined =>
  environment[name]?.trim() || undefined

const MAX_QUOTED = 80

/** A value as it was given, on one line. */
const quoted = (value: string): string =>
  JSON.stringify(value.length > MAX_QUOTED ? `${value.slice(0, MAX_QUOTED)}…` : value)

const attempt = (faults: string[], name: string, read: () => unknown): unknown => {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    faults.push(`${name} ${error.message}${error.value === undefined ? '' : `, not ${quoted(error.value)}`}`)
    return undefined
  }
}

export interface Settings {
  /** The value of each setting, `undefined` where it is not valid. */
  readonly values: Values
  /** The variable that each setting is given by: its own name, or that with `_FILE`. Without those that are not given. */
  readonly variables: Readonly<Partial<Record<keyof Values, string>>>
  /** What is wrong, one line a fault. */
  readonly faults: string[]
}

export const readSettings = (environment: Environment): Settings => {
  const faults: string[] = []
  const values: Record<string, unknown> = {}
  const variables: Record<string, string> = {}
  for (const [name, read] of Object.entries(SETTINGS)) {
    const fileName = `${name}_FILE`
    const file = (FILE_SETTINGS as readonly string[]).includes(name)
      ? given(environment, fileName)
      : undefined
    const direct = given(environment, name)
    if (file !== undefined && direct !== undefined) faults.push(`${name} is given twice, also as ${fileName}`)
    const variable = file === undefined ? name : fileName
    if (file !== undefined || direct !== undefined) variables[name] = variable
    values[name] = attempt(faults, variable, () => read(file === undefined ? direct : readFile(file)))
  }
  return { values: values as Values, variables: variables as Settings['variables'], faults }
}
