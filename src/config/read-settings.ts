/** Reads the environment by the declarations of the settings. */
import { existsSync } from 'node:fs'
import { readFile } from './files.ts'
import { type Setting, SettingError, type SettingValues } from './readers.ts'
import { SETTINGS, type Values } from './settings.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** The environment of the process, with the variables of `.env` in the working directory that it does not have. */
export const loadEnvironment = (): Environment => {
  if (existsSync('.env')) process.loadEnvFile('.env')
  return process.env
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

/** The settings of features. */
export type FurtherSettings = Readonly<Record<string, Setting>>

export interface Settings {
  /** The value of each setting, `undefined` where it is invalid. */
  readonly values: Values
  /** As `values`, of the settings of features. */
  readonly further: SettingValues<FurtherSettings>
  /** The variable of each setting that is given: its name, or its name with `_FILE`. */
  readonly variables: Readonly<Record<string, string>>
  /** One line each. */
  readonly errors: string[]
}

export const readSettings = (environment: Environment, furtherSettings: FurtherSettings = {}): Settings => {
  const errors: string[] = []
  const variables: Record<string, string> = {}
  const read = (name: string, setting: Setting): unknown => {
    const fileName = `${name}_FILE`
    const file = setting.canBeFile ? given(environment, fileName) : undefined
    const direct = given(environment, name)
    if (file !== undefined && direct !== undefined) errors.push(`${name} is given twice, also as ${fileName}`)
    const variable = file === undefined ? name : fileName
    if (file !== undefined || direct !== undefined) variables[name] = variable
    return attempt(errors, variable, () => {
      const value = file === undefined ? (direct ?? setting.default) : readFile(file)
      return value === null ? null : setting.read(value)
    })
  }
  const valuesOf = (settings: FurtherSettings) =>
    Object.fromEntries(Object.entries(settings).map(([name, setting]) => [name, read(name, setting)]))
  return {
    values: valuesOf(SETTINGS) as Values,
    further: valuesOf(furtherSettings),
    variables,
    errors,
  }
}
