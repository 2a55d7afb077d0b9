/** Settings as an object of a host application, by the names of the environment variables. */
import { ConfigError } from './config.ts'
import type { Environment } from './read-settings.ts'
import type { SettingName } from './settings.ts'

type Given = string | number | boolean | undefined

type Name = SettingName | `${SettingName}_FILE`

/** `{ DATABASE_URL: 'sqlite:data/gatehouse.db', SESSION_IDLE: '10d', PASSWORD_MIN_LENGTH: 12 }` */
export type GatehouseConfig = { readonly [Setting in Name]?: Given } & Readonly<
  // Settings of features. Misspelled names are warnings at the start.
  Record<Uppercase<string>, Given>
>

const asText = (name: string, value: unknown): string | undefined => {
  if (value === undefined || value === null) return undefined
  if (!['string', 'number', 'boolean'].includes(typeof value))
    throw new ConfigError([`${name} must be text, a number or a boolean`])
  return String(value)
}

/**
 * @returns the settings as text. `NODE_ENV` is the process's unless it is given, so that a host in production gets the checks of
 * production. Without an object, the environment of the process.
 * @throws {ConfigError}
 */
export const toEnvironment = (config: GatehouseConfig | undefined): Environment => {
  if (config === undefined) return process.env
  const given = Object.entries(config).map(([name, value]) => [name, asText(name, value)])
  return { NODE_ENV: process.env.NODE_ENV, ...Object.fromEntries(given) }
}
