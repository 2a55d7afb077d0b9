/** Every setting of the environment, its default and its check, in one table; and how the environment is read by it. */
import { readFileSync } from 'node:fs'
import { mailbox, mailUrl, pageUrl, serviceUrl } from './mail-setting-readers.ts'
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
} from './setting-readers.ts'

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

export interface Settings {
  /** The value of each setting, `undefined` where it is not valid. */
  readonly values: Values
  /** The variable that each setting is read from: its own name, or that with `_FILE`. */
  readonly variables: Readonly<Record<keyof Values, string>>
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
    variables[name] = variable
    values[name] = attempt(faults, variable, () => read(file === undefined ? direct : readFile(file)))
  }
  return { values: values as Values, variables: variables as Settings['variables'], faults }
}
