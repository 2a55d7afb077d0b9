/** Options of commands, read by the same readers as settings. */
import { type Command, Option } from 'commander'
import { asciiTrim } from '#base/ascii'
import { type Reader, SettingError } from '#base/settings/readers'
import { fieldErrors } from '#http/validation/field-errors'
import { INVALID_TIMESTAMP, isTimestamp } from '#http/validation/formats'
import { databaseUrl as location } from '#storage/location'
import type { DatabaseOptions } from '../declaration.ts'
import { sentences, UsageError } from './failure.ts'

/** @throws {UsageError} with the name of the option, but not its value, which may be a secret. */
export const readOption = <Value>(name: string, read: Reader<Value>, text: string): Value => {
  try {
    return read(text)
  } catch (error) {
    throw error instanceof SettingError ? new UsageError(`${name} ${error.message}`) : error
  }
}

/** @param flags such as `--limit <number>`. */
export const option = (flags: string, description: string, read: Reader<unknown>): Option =>
  new Option(flags, description).argParser(text => readOption(flags.split(' ', 1)[0] ?? '', read, text))

export const nonEmpty: Reader<string> = text => {
  const trimmed = asciiTrim(text)
  if (!trimmed) throw new SettingError('must not be empty')
  return trimmed
}

/** Texts between commas, which a schema checks. */
export const textList: Reader<readonly string[]> = text => text.split(',').map(asciiTrim)

/** Reads milliseconds since the epoch. */
export const timestamp: Reader<number> = text => {
  if (!isTimestamp(text)) throw new SettingError(INVALID_TIMESTAMP)
  return Date.parse(text)
}

type Schemas = typeof import('#http/validation/schemas')

/** Applies the schemas of the HTTP API, which are loaded on demand, to what options and arguments form together. @throws {UsageError} with the API's messages. */
export const validated = async <Input extends object>(
  input: Input,
  schemaOf: (schemas: Schemas) => object,
): Promise<Input> => {
  const schemas = await import('#http/validation/schemas')
  const { jsonValidator } = await import('#http/validation/compile')
  const validate = jsonValidator(schemaOf(schemas))
  const copy = { ...input }
  if (!validate(copy as Record<string, unknown>))
    throw new UsageError(sentences(fieldErrors(validate.errors ?? [])).join('\n'))
  return copy
}

export interface StoreOptions extends DatabaseOptions {
  readonly json?: boolean
}

const databaseUrl: Reader<string> = text => {
  location(text)
  return text
}

/** The group of commands with a name, such as `users`. Creates it if there is none. */
export const commandGroup = (program: Command, name: string): Command =>
  program.commands.find(command => command.name() === name) ?? program.command(name)

/** A command on the store that the environment or `--database` names. */
export const databaseCommand = (parent: Command, nameAndArguments: string, description: string): Command =>
  parent
    .command(nameAndArguments)
    .description(description)
    .addOption(option('--database <url>', 'sqlite:… or postgres://…, in place of DATABASE_URL', databaseUrl))

/** A command with the same result as the HTTP API. */
export const storeCommand = (parent: Command, nameAndArguments: string, description: string): Command =>
  databaseCommand(parent, nameAndArguments, description).option(
    '--json',
    'write the result as one line of JSON, like the HTTP API',
  )
