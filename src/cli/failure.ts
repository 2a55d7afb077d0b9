/** What ends a command, as a sentence for the operator and an exit code. */
import { getSystemErrorMessage } from 'node:util'
import { CommanderError } from 'commander'
import { ConfigError } from '../config/config.ts'
import { ServiceError, sentence } from '../errors.ts'
import { printable } from './output.ts'

/** The command line is not valid; the message says what is wrong with it, and repeats nothing of it. */
export class UsageError extends Error {}

/** What the operator can mend, in a sentence: no fault of the code. */
export class Refusal extends Error {}

/** A file that the user named and that cannot be read or written: the one argument that is repeated, unless it is a URL. */
class FileFault extends Refusal {
  constructor(file: string, { code, errno }: { code: string; errno: number }) {
    const name = file.includes('://') ? 'the file that is named' : printable(file)
    super(`${code}: ${getSystemErrorMessage(errno)}: ${name}`)
  }
}

/** The system's error names another file than the one that was asked for, or none. @returns other errors as they are. */
export const withFile = (file: string, error: unknown): unknown => {
  const { code, errno } = error as NodeJS.ErrnoException
  return code === undefined || errno === undefined ? error : new FileFault(file, { code, errno })
}

export const EXIT_CODES =
  'Exit codes: 0 done, 1 refused, failed or stopped, 2 the command line or the configuration is not valid'

/** Characters of what is too short to be a secret. */
const SHORT = 3

/**
 * Arguments may have passwords, also in the wrong place: of those that are neither short, nor plain words, nor numbers none
 * is repeated.
 */
export const withoutArguments = (text: string): string =>
  process.argv
    .slice(2)
    .filter(argument => argument.length > SHORT && !/^([a-z-]*|\d{1,9})$/.test(argument))
    .reduce((rest, argument) => rest.replaceAll(argument, '…'), text)

/** An error body's errors. Names of fields may come from outside. */
export const sentences = (errors: Readonly<Record<string, readonly string[]>>): string[] =>
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
  const isMendable = [UsageError, Refusal, ConfigError].some(kind => error instanceof kind) || 'code' in error
  return isMendable ? error.message : String(error.stack)
}

/** What the operator can mend is said in a sentence, what is a fault of the code has a stack; without the arguments. */
export const explain = (error: unknown): string =>
  error instanceof FileFault ? error.message : withoutArguments(sentenceOf(error))

/** Whatever the API would answer with 400 is a fault of the command line too. */
export const exitCode = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  if (error instanceof UsageError || error instanceof ConfigError) return 2
  return error instanceof ServiceError && error.status === 400 ? 2 : 1
}
