import { isUtf8 } from 'node:buffer'
import type { Command } from 'commander'
import type { CreatedAccount } from '../accounts/new-accounts.ts'
import { OPERATOR } from '../audit-log/event.ts'
import { PASSWORD_MAX_LENGTH } from '../passwords/policy.ts'
import { fieldErrors } from '../validation/field-errors.ts'
import { LineSplitter } from '../validation/line-splitter.ts'
import { sentences, UsageError } from './failure.ts'
import { type StoreOptions, storeCommand } from './options.ts'
import { settings, withStore } from './store.ts'
import { printUser } from './user-output.ts'

interface CreateOptions extends StoreOptions {
  readonly firstName?: string
  readonly lastName?: string
  readonly emailVerified?: boolean
  readonly passwordStdin?: boolean
}

const firstLine = async (): Promise<Buffer | null> => {
  const splitter = new LineSplitter()
  for await (const chunk of process.stdin) for (const { bytes } of splitter.push(chunk)) return bytes
  for (const { bytes } of splitter.end()) return bytes
  return Buffer.alloc(0)
}

/** Not from a terminal, which would show it. @throws {UsageError} */
const readPassword = async (): Promise<string> => {
  if (process.stdin.isTTY) throw new UsageError('--password-stdin takes the password from a pipe or a file')
  const bytes = await firstLine()
  if (bytes === null) throw new UsageError(`The password must have at most ${PASSWORD_MAX_LENGTH} characters`)
  if (!isUtf8(bytes)) throw new UsageError('The password must be valid Unicode')
  return bytes.toString('utf8').replace(/\r$/, '')
}

/** By the rules of the API, in its words; they are loaded for this command alone. @throws {UsageError} */
const validated = async (account: CreatedAccount, passwordMinLength: number): Promise<CreatedAccount> => {
  const { NewAccount } = await import('../validation/new-account.ts')
  const { jsonValidator } = await import('../validation/validation.ts')
  const validate = jsonValidator(NewAccount(passwordMinLength))
  const copy = { ...account }
  if (!validate(copy)) throw new UsageError(sentences(fieldErrors(validate.errors ?? [])).join('\n'))
  return copy
}

const create = async (email: string, { passwordStdin, ...given }: CreateOptions): Promise<void> => {
  const { firstName, lastName, emailVerified, ...options } = given
  const { PASSWORD_MIN_LENGTH } = settings(options)
  const account = {
    email,
    ...(firstName !== undefined && { firstName }),
    ...(lastName !== undefined && { lastName }),
    ...(emailVerified !== undefined && { emailVerified }),
    ...(passwordStdin && { password: await readPassword() }),
  }
  const valid = await validated(account, PASSWORD_MIN_LENGTH)
  await withStore(options, async ({ newAccounts }) =>
    printUser(options.json, await newAccounts.create(valid, OPERATOR)),
  )
}

export const usersCreate = (users: Command): void => {
  storeCommand(users, 'create <email>', 'Open an account; without a password it waits for a reset')
    .option('--first-name <name>', 'the first name')
    .option('--last-name <name>', 'the last name')
    .option('--email-verified', 'the e-mail is known to be theirs')
    .option('--password-stdin', 'the password is the first line of standard input')
    .action(create)
}
