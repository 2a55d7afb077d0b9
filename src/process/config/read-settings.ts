/** Reads the environment by the declarations of the settings. */
import { existsSync, readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import {
  ConfigError,
  readFile,
  type Setting,
  SettingError,
  type SettingValues,
  shownOf,
} from '#base/settings/readers'
import { decodeUtf8, EncodingError } from '#base/text-encoding'
import { SETTINGS, type Values } from './settings.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** An empty variable counts as absent: compose files and shells pass on `ADMIN_KEY=` for an unset one. */
const given = (environment: Environment, name: string): string | undefined =>
  environment[name]?.trim() || undefined

const MAX_QUOTED = 80

/** A value as given, on one line. */
const quoted = (value: string): string =>
  JSON.stringify(value.length > MAX_QUOTED ? `${value.slice(0, MAX_QUOTED)}…` : value)

/** @param isKey whether the value is secret. Errors of other kinds may contain a value, so their messages are left out. */
const problemOf = (error: unknown, isKey: boolean): string => {
  if (!(error instanceof SettingError)) return 'is not valid'
  return error.value === undefined || isKey ? error.message : `${error.message}, not ${quoted(error.value)}`
}

export type SettingDeclarations = Readonly<Record<string, Setting>>

export interface Settings {
  /** The value of each setting, `undefined` where it is invalid. */
  readonly values: Values
  /** The values of the settings of features, `undefined` where one is invalid. */
  readonly featureSettings: SettingValues<SettingDeclarations>
  /** The variable of each setting that is given: its name, or its name with `_FILE`. */
  readonly variables: Readonly<Record<string, string>>
  /** What may be seen of values, see `shown` of {@link Setting}. */
  readonly shown: Readonly<Record<string, string>>
  readonly errors: string[]
}

export const readSettings = (environment: Environment, ofFeatures: SettingDeclarations = {}): Settings => {
  const errors: string[] = []
  const variables: Record<string, string> = {}
  const shown: Record<string, string> = {}
  /** @returns the file or the text of a setting, and the variable that has it. */
  const sourceOf = (name: string, { canBeFile }: Setting) => {
    const fileName = `${name}_FILE`
    const file = canBeFile ? given(environment, fileName) : undefined
    const direct = given(environment, name)
    if (file !== undefined && direct !== undefined) errors.push(`${name} is given twice, also as ${fileName}`)
    const variable = file === undefined ? name : fileName
    if (file !== undefined || direct !== undefined) variables[name] = variable
    return { file, direct, variable }
  }
  const read = (name: string, setting: Setting): unknown => {
    const { file, direct, variable } = sourceOf(name, setting)
    try {
      const value = file === undefined ? (direct ?? setting.default) : readFile(file)
      if (value === '' && setting.isKey) throw new SettingError('names a file that is empty')
      if (value === null) return null
      const result = setting.read(value)
      const visible = shownOf(setting, value)
      if (visible !== null) shown[name] = visible
      return result
    } catch (error) {
      errors.push(`${variable} ${problemOf(error, setting.isKey === true)}`)
      return undefined
    }
  }
  const valuesOf = (settings: SettingDeclarations) =>
    Object.fromEntries(Object.entries(settings).map(([name, setting]) => [name, read(name, setting)]))
  return {
    values: valuesOf(SETTINGS) as Values,
    featureSettings: valuesOf(ofFeatures),
    variables,
    shown,
    errors,
  }
}

const ENV_FILE = '.env'

/** Reads `.env`. Not by `process.loadEnvFile`, which loses the first variable after a byte order mark. */
const readEnvFile = (): Readonly<NodeJS.Dict<string>> => {
  try {
    return parseEnv(decodeUtf8(readFileSync(ENV_FILE)))
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    const problem = error instanceof EncodingError ? error.message : `cannot be read (${code})`
    throw new ConfigError([`The file ${ENV_FILE} ${problem}`])
  }
}

/** The environment of the process, with the variables of `.env` in the working directory that it does not have. @throws {ConfigError} */
export const loadEnvironment = (): Environment => {
  if (existsSync(ENV_FILE))
    for (const [name, value] of Object.entries(readEnvFile())) process.env[name] ??= value
  return process.env
}
