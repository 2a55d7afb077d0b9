/** Every setting, declared once; and how the environment is read by the declarations. */
import { readFileSync } from 'node:fs'
import { databaseUrl } from './database-reader.ts'
import { mailbox, mailUrl } from './mail-readers.ts'
import {
  duration,
  integer,
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

interface Setting {
  readonly read: Reader<unknown>
  /** As it would be given; `null`: the value is `null` unless it is given. */
  readonly default: string | null
  /** Whether it can also be named by file, as container platforms mount secrets: `ADMIN_KEY_FILE=/run/secrets/admin-key`. */
  readonly canBeFile?: true
  /** Whether it is a key: a weak one stops the start in production. */
  readonly isKey?: true
}

const key = (minLength: number) =>
  ({ read: secret(minLength), default: null, canBeFile: true, isKey: true }) as const

export const SETTINGS = {
  HOST: { read: text, default: '127.0.0.1' },
  PORT: { read: integer(0, 65_535), default: '3000' },
  WORKERS: { read: workers, default: '1' },
  DATABASE_URL: { read: databaseUrl, default: 'sqlite:data/gatehouse.db', canBeFile: true },
  DATABASE_CONNECTIONS: { read: integer(1, 1_000), default: '10' },
  ADMIN_KEY: key(16),
  ADMIN_KEY_PREVIOUS: key(16),
  JWT_SECRET: key(32),
  JWT_SECRET_PREVIOUS: key(32),
  NODE_ENV: { read: oneOf('development', 'production', 'test'), default: 'development' },
  LOG_LEVEL: { read: oneOf('info', 'fatal', 'error', 'warn', 'debug', 'trace', 'silent'), default: 'info' },
  LOG_REQUESTS: { read: oneOf('off', 'on'), default: 'off' },
  TRUST_PROXY: { read: networks, default: 'none' },
  ALLOWED_ORIGINS: { read: origins, default: '' },
  RATE_LIMIT: { read: oneOf('on', 'off'), default: 'on' },
  DOCS: { read: oneOf('on', 'off'), default: 'on' },
  SESSION_LIFETIME: { read: duration('1s'), default: '30d' },
  SESSION_IDLE: { read: duration('1s'), default: '10d' },
  EVENTS_KEPT: { read: duration('1d'), default: '365d' },
  PASSWORD_MIN_LENGTH: { read: integer(8, 128), default: '8' },
  REQUIRE_EMAIL_VERIFICATION: { read: oneOf('false', 'true'), default: 'false' },
  MAIL_URL: { read: mailUrl, default: null, canBeFile: true },
  MAIL_FROM: { read: mailbox, default: 'Gatehouse <no-reply@localhost>' },
  PUBLIC_URL: { read: serviceUrl, default: null },
  WEB_URL: { read: pageUrl, default: null },
  DRAIN_DELAY: { read: duration('0s'), default: '1s' },
} as const satisfies Record<string, Setting>

export type SettingName = keyof typeof SETTINGS

const namesWith = (property: 'canBeFile' | 'isKey'): readonly SettingName[] =>
  Object.entries<Setting>(SETTINGS).flatMap(([name, setting]) =>
    setting[property] === true ? [name as SettingName] : [],
  )

/** Settings that can be named by file, with the suffix `_FILE`. */
export const FILE_SETTINGS = namesWith('canBeFile')

type Key = {
  [Name in SettingName]: (typeof SETTINGS)[Name] extends { isKey: true } ? Name : never
}[SettingName]

export const KEYS = namesWith('isKey') as readonly Key[]

type Value<S extends Setting> = ReturnType<S['read']> | (S['default'] extends null ? null : never)

export type Values = { readonly [Name in SettingName]: Value<(typeof SETTINGS)[Name]> }

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Text that may be quoted because it is a path, and not a secret or a URL in the wrong variable: it begins like a path, or
 * has a folder or an extension in lower case, where a random key has other characters.
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

/** A value as given, on one line. */
const quoted = (value: string): string =>
  JSON.stringify(value.length > MAX_QUOTED ? `${value.slice(0, MAX_QUOTED)}…` : value)

const attempt = (errors: string[], name: string, read: () => unknown): unknown => {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    errors.push(`${name} ${error.message}${error.value === undefined ? '' : `, not ${quoted(error.value)}`}`)
    return undefined
  }
}

export interface Settings {
  /** The value of each setting, `undefined` where it is invalid. */
  readonly values: Values
  /** The variable of each setting that is given: its name, or its name with `_FILE`. */
  readonly variables: Readonly<Partial<Record<SettingName, string>>>
  /** One line each. */
  readonly errors: string[]
}

export const readSettings = (environment: Environment): Settings => {
  const errors: string[] = []
  const values: Record<string, unknown> = {}
  const variables: Record<string, string> = {}
  for (const [name, setting] of Object.entries<Setting>(SETTINGS)) {
    const fileName = `${name}_FILE`
    const file = setting.canBeFile ? given(environment, fileName) : undefined
    const direct = given(environment, name)
    if (file !== undefined && direct !== undefined) errors.push(`${name} is given twice, also as ${fileName}`)
    const variable = file === undefined ? name : fileName
    if (file !== undefined || direct !== undefined) variables[name] = variable
    values[name] = attempt(errors, variable, () => {
      const value = file === undefined ? (direct ?? setting.default) : readFile(file)
      return value === null ? null : setting.read(value)
    })
  }
  return { values: values as Values, variables: variables as Settings['variables'], errors }
}
