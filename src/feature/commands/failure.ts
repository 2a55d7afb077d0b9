/** Errors of commands: a message for the operator, and an exit code. */
import { getSystemErrorMessage } from 'node:util'
import { CommanderError } from 'commander'
import { type FieldErrors, ServiceError, sentence } from '#base/errors'
import { ConfigError } from '#base/settings/readers'
import { printable } from './output.ts'

/** The command line is not valid. The message does not quote it, because it may contain secrets. */
export class UsageError extends Error {}

/** An error that the operator can fix, as opposed to a bug. */
export class CommandError extends Error {}

export interface NamedFile {
  /** What names it, at the beginning of a sentence: an option, or an argument. */
  readonly namedBy: string
  readonly path: string
}

/** A file that cannot be read or written. Its path is the only argument that is quoted, unless it is a URL. */
export class FileError extends CommandError {
  /** @param problem such as `a file that cannot be read`. @param reason such as `ENOENT: no such file or directory`. */
  constructor({ namedBy, path }: NamedFile, problem: string, reason?: string) {
    const name = path.includes('://') ? '' : `: ${printable(path)}`
    super(`${namedBy} names ${problem}${name}${reason === undefined ? '' : ` (${reason})`}`)
  }
}

/** @returns what has failed, such as `ENOENT: no such file or directory`; `null` for an error of another kind. */
export const systemReasonOf = (error: unknown): string | null => {
  const { code, errno } = error as NodeJS.ErrnoException
  return code === undefined || errno === undefined ? null : `${code}: ${getSystemErrorMessage(errno)}`
}

/** @returns a sentence instead of a system error, which names another file or none; other errors unchanged. */
export const fileErrorOf = (file: NamedFile, done: 'read' | 'written', error: unknown): unknown => {
  const reason = systemReasonOf(error)
  return reason === null ? error : new FileError(file, `a file that cannot be ${done}`, reason)
}

export const EXIT_CODES =
  'Exit codes: 0 done, 1 refused, failed or stopped, 2 the command line or the configuration is not valid'

/** Maximum characters of arguments that are too short to be secrets. */
const SHORT = 3

/**
 * Removes the arguments of the command line from a text, because any of them may be a password. Short ones, plain words and
 * numbers stay.
 */
export const withoutArguments = (text: string): string =>
  process.argv
    .slice(2)
    .filter(argument => argument.length > SHORT && !/^([a-z-]*|\d{1,9})$/.test(argument))
    .reduce((rest, argument) => rest.replaceAll(argument, '…'), text)

/** The messages of an error body. Field names may contain control characters. */
export const sentences = (errors: FieldErrors): string[] =>
  Object.entries(errors).flatMap(([field, messages]) =>
    messages.map(message => printable(sentence(field, message))),
  )

const explainService = ({ field, message, cause }: ServiceError): string => {
  const whole = sentence(field, message)
  return cause instanceof Error ? `${whole}: ${cause.message}` : whole
}

const sentenceOf = (error: unknown): string => {
  if (error instanceof ServiceError) return explainService(error)
  if (!(error instanceof Error)) return String(error)
  const isExpected =
    [UsageError, CommandError, ConfigError].some(kind => error instanceof kind) || 'code' in error
  return isExpected ? error.message : String(error.stack)
}

/** @returns the message of an error that the operator can fix, the stack of a bug; without the command line's arguments. */
export const explain = (error: unknown): string =>
  error instanceof FileError ? error.message : withoutArguments(sentenceOf(error))

/** Errors that have status 400 over HTTP count as invalid command lines. */
export const exitCode = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  if (error instanceof UsageError || error instanceof ConfigError) return 2
  return error instanceof ServiceError && error.status === 400 ? 2 : 1
}
