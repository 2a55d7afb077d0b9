/** `users`: lists, creates, changes, imports and exports users. */
import { isUtf8 } from 'node:buffer'
import { type Command, Option } from 'commander'
import { ServiceError } from '#base/errors'
import { integer, oneOf, type Reader, SettingError } from '#base/settings/readers'
import type { AccountInput } from '#core/accounts/account-creation'
import type { ExportContents, Exports, ImportResult, UserLine } from '#core/accounts/bulk-users'
import { serializeExportedUser, serializeImportResult } from '#core/accounts/serializers'
import { OPERATOR } from '#core/audit-log/event'
import { PASSWORD_MAX_LENGTH } from '#core/passwords/policy'
import { FIELDS, FILTERS, filterFieldsIn } from '#core/users/fields'
import { SORTS, type Sort, type UserFilter } from '#core/users/listing'
import { INVALID_ROLE, isRole } from '#core/users/roles'
import { serializeAdminUser } from '#core/users/serializers'
import { canonicalEmail, type User } from '#core/users/user'
import type { Users } from '#core/users/users'
import { bulkPropertySchemasOf, credentialSchemasOf } from '#feature/assembly'
import { explain, sentences, UsageError } from '#feature/commands/failure'
import {
  databaseCommand,
  nonEmpty,
  option,
  type StoreOptions,
  storeCommand,
  validated,
} from '#feature/commands/options'
import {
  count,
  countProgress,
  formatNumber,
  print,
  printNext,
  printStatus,
  STOPPED,
  stopSignal,
  table,
  write,
} from '#feature/commands/output'
import type { DatabaseOptions } from '#feature/declaration'
import { allFeatures } from '#features/built-in'
import { emailViolations } from '#http/validation/formats'
import { readLines, toLines, type Validate } from '#http/validation/ndjson'
import { parseStrictJson } from '#http/validation/strict-json'
import type { Values } from '../config/settings.ts'
import { writeAtomically } from './files.ts'
import { firstInputLine, inputChunks } from './input.ts'
import { foreignUserLines, type LeftOut, type OriginOptions } from './origins/foreign-users.ts'
import { ORIGINS, type OriginName } from './origins/origins.ts'
import { settings, withStore } from './store.ts'

/** Roles, metadata and other values on one line. */
const cellOf = (value: unknown): string => {
  if (Array.isArray(value)) return value.join(' ') || '-'
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '-')
}

const printUser = (json: boolean | undefined, user: User): void => {
  const serialized = serializeAdminUser(user)
  const rows = Object.entries(serialized).map(([name, value]) => [name, cellOf(value)])
  print(json, serialized, table(rows))
}

interface ListOptions extends StoreOptions {
  readonly search?: string
  readonly email?: string
  readonly disabled?: boolean
  readonly role?: string
  readonly limit: number
  readonly cursor?: string
  readonly sort: Sort
  readonly count?: true | 'approximate'
}

const COLUMNS = ['id', 'created', 'last request', 'state', 'e-mail', 'name']

const row = (user: User): string[] => {
  const { createdAt, lastRequestAt } = serializeAdminUser(user)
  const name = [user.firstName, user.lastName].filter(part => part !== null).join(' ')
  return [user.id, createdAt, lastRequestAt ?? '-', user.disabled ? 'disabled' : 'enabled', user.email, name]
}

/** What `GET /admin/users` says of the number of matches, and how it is printed; `null` if it is not asked for. */
const totalsOf = async (users: Users, filter: UserFilter, what: ListOptions['count']) => {
  if (what === undefined) return null
  if (what === 'approximate') {
    const approximateTotal = await users.estimate(filter)
    return { fields: { approximateTotal }, text: `about ${count(approximateTotal, 'user')} in all` }
  }
  const total = await users.count(filter)
  return { fields: { total }, text: `${count(total, 'user')} in all` }
}

const list = ({
  search,
  email,
  disabled,
  role,
  limit,
  cursor,
  sort,
  count: withTotal,
  ...options
}: ListOptions) =>
  withStore(options, async ({ users }) => {
    const filter = {
      searchEmail: true,
      ...(search !== undefined && { search }),
      ...(email !== undefined && { email }),
      ...(disabled !== undefined && { disabled }),
      ...(role !== undefined && { role }),
      fields: filterFieldsIn({ ...options }),
    }
    const { users: found, nextCursor } = await users.list({ filter, limit, cursor, sort })
    const totals = await totalsOf(users, filter, withTotal)
    const page = { results: found.map(user => serializeAdminUser(user)), nextCursor, ...totals?.fields }
    print(options.json, page, table([COLUMNS, ...found.map(row)]))
    if (options.json) return
    if (totals !== null) printStatus(totals.text)
    printNext(nextCursor)
  })

const role: Reader<string> = text => {
  if (!isRole(text)) throw new SettingError(INVALID_ROLE)
  return text
}

/** An e-mail that an account may have, in canonical form. */
const knownEmail: Reader<string> = text => {
  const email = canonicalEmail(text)
  const [violation] = emailViolations(email)
  if (violation !== undefined) throw new SettingError(violation)
  return email
}

const addList = (users: Command): void => {
  const command = storeCommand(users, 'list', 'List users, page by page')
  for (const {
    option: [flags, description],
  } of FILTERS)
    command.addOption(new Option(flags, `only users with this value: ${description}`))
  command
    .addOption(
      option('--search <text>', 'the start of a name or of the e-mail, in any letter case', nonEmpty),
    )
    .addOption(option('--email <e-mail>', 'the user with this e-mail', knownEmail))
    .option('--disabled', 'only disabled users')
    .option('--no-disabled', 'only enabled users')
    .addOption(option('--role <role>', 'only users with this role', role))
    .addOption(option('--limit <number>', 'users per page, 1 to 100', integer(1, 100)).default(20))
    .addOption(option('--cursor <cursor>', 'the cursor that the previous page ended with', nonEmpty))
    .addOption(
      option('--sort <field>', SORTS.join(', '), oneOf('-createdAt', ...SORTS)).default('-createdAt'),
    )
    .addOption(
      option(
        '--count [approximate]',
        'also count all matches, or estimate their number',
        oneOf('approximate'),
      ),
    )
    .action(list)
}

interface CreateOptions extends StoreOptions {
  readonly emailVerified?: boolean
  readonly passwordStdin?: boolean
}

/** Refuses a terminal, which would show the password. @throws {UsageError} */
const readPassword = async (): Promise<string> => {
  if (process.stdin.isTTY) throw new UsageError('--password-stdin takes the password from a pipe or a file')
  const bytes = await firstInputLine()
  if (bytes === null) throw new UsageError(`The password must have at most ${PASSWORD_MAX_LENGTH} characters`)
  if (!isUtf8(bytes)) throw new UsageError('The password must be valid Unicode')
  return bytes.toString('utf8').replace(/\r$/, '')
}

const metadataSchemas = ({ USER_METADATA_SCHEMA, APP_METADATA_SCHEMA }: Values) => ({
  user: USER_METADATA_SCHEMA,
  app: APP_METADATA_SCHEMA,
})

/** A JSON object; `validated` checks what it contains. */
const jsonObject: Reader<unknown> = text => {
  try {
    return parseStrictJson(text)
  } catch (error) {
    throw error instanceof ServiceError ? new SettingError('must be a JSON object') : error
  }
}

/** Collects a repeated option. */
const collect = (role: string, roles: readonly string[] = []): readonly string[] => [...roles, role]

/** The option of a field, by its kind. `validated` checks the value. */
const FIELD_OPTIONS = {
  text: (flags: string, description: string) => new Option(flags, description),
  roles: (flags: string, description: string) => new Option(flags, description).argParser(collect),
  metadata: (flags: string, description: string) => option(flags, description, jsonObject),
}

const fieldOptions = () =>
  FIELDS.map(({ field, kind, option: args }) => ({ field, option: FIELD_OPTIONS[kind.name](...args) }))

const create = async (email: string, options: CreateOptions): Promise<void> => {
  const { passwordStdin, emailVerified } = options
  const values = settings(options)
  const given: Readonly<Record<string, unknown>> = { ...options }
  const fields = fieldOptions().map(({ field, option }) => [field, given[option.attributeName()]] as const)
  const account: AccountInput = {
    email,
    ...Object.fromEntries(fields.filter(([, value]) => value !== undefined)),
    ...(emailVerified !== undefined && { emailVerified }),
    ...(passwordStdin && { password: await readPassword() }),
  }
  const valid = await validated(account, ({ NewAccount }) =>
    NewAccount(values.PASSWORD_MIN_LENGTH, metadataSchemas(values)),
  )
  await withStore(options, async ({ newAccounts }) =>
    printUser(options.json, await newAccounts.create(valid, OPERATOR)),
  )
}

const addCreate = (users: Command): void => {
  const command = storeCommand(
    users,
    'create <email>',
    'Create an account; without a password the user has to reset it first',
  )
  for (const { option } of fieldOptions()) command.addOption(option)
  command
    .option('--email-verified', 'mark the e-mail as verified')
    .option('--password-stdin', 'read the password from the first line of standard input')
    .action(create)
}

const MAX_FAILURES = 20

/** Checks a line by the rules of the HTTP API, which are loaded on demand. */
const lineValidator = async (values: Values): Promise<Validate> => {
  const { ImportedUser } = await import('#http/validation/schemas')
  const { jsonValidator } = await import('#http/validation/compile')
  const [credentials, properties] = [
    await credentialSchemasOf(allFeatures()),
    await bulkPropertySchemasOf(allFeatures()),
  ]
  return jsonValidator(ImportedUser(metadataSchemas(values), credentials, properties)) as Validate
}

interface ImportOptions extends StoreOptions, OriginOptions {
  readonly from?: OriginName
}

const userLines = async (
  file: string | undefined,
  { from, ...options }: ImportOptions,
  leftOut: LeftOut,
  stop: AbortSignal,
): Promise<AsyncIterable<readonly UserLine[]>> => {
  const validate = await lineValidator(settings(options))
  const input = file === undefined ? null : { namedBy: 'The argument [file]', path: file }
  if (from !== undefined) return foreignUserLines(ORIGINS[from], input, options, { validate, leftOut, stop })
  if (options.hashes !== undefined || options.hashParameters !== undefined)
    throw new UsageError('--hashes and --hash-parameters need --from')
  return readLines(inputChunks(input, stop), validate) as AsyncIterable<readonly UserLine[]>
}

const failureReporter = () => {
  let failures = 0
  return (result: ImportResult): void => {
    if (result.status !== 'failed') return
    failures += 1
    if (failures <= MAX_FAILURES) printStatus(`Line ${result.line}: ${sentences(result.errors).join('; ')}`)
    if (failures === MAX_FAILURES + 1) printStatus('More lines have failed: --json prints all of them')
  }
}

type Ended = Extract<ImportResult, { status: 'finished' | 'stopped' }>

const isEnd = (result: ImportResult): result is Ended =>
  result.status === 'finished' || result.status === 'stopped'

const summary = ({ created, exists, failed }: Ended): string =>
  [
    `${count(created, 'user')} created`,
    `${formatNumber(exists)} already existed`,
    `${count(failed, 'line')} failed`,
  ].join(', ')

const finishImport = (end: Ended, json: boolean | undefined, isStopped: boolean): void => {
  if (!json) print(false, null, [summary(end)])
  if (end.status === 'stopped') printStatus(isStopped ? STOPPED : explain(end.error))
  if (end.status === 'stopped' || end.failed > 0) process.exitCode = 1
}

const printLeftOut = (leftOut: LeftOut): void => {
  for (const [name, users] of leftOut) printStatus(`Left out: ${name}, of ${count(users, 'user')}`)
}

const importUsers = (file: string | undefined, { json, ...options }: ImportOptions): Promise<void> =>
  withStore(options, async ({ imports }) => {
    const stop = stopSignal()
    const reportProgress = countProgress()
    const reportFailure = failureReporter()
    const leftOut: LeftOut = new Map()
    const lines = await userLines(file, options, leftOut, stop)
    let done = 0
    for await (const results of imports.run(lines, OPERATOR)) {
      if (json) await write(toLines(results.map(serializeImportResult)))
      else results.forEach(reportFailure)
      const end = results.find(isEnd)
      if (end === undefined) {
        done += results.length
        reportProgress(done)
      } else {
        printLeftOut(leftOut)
        finishImport(end, json, stop.aborted)
      }
    }
  })

const ORIGIN_NAMES = Object.keys(ORIGINS) as [OriginName, ...OriginName[]]

const addImport = (users: Command): void => {
  storeCommand(
    users,
    'import [file]',
    'Import users, one per line as an export writes them, or the export of another system, from a file or from standard input',
  )
    .addOption(
      option(
        '--from <system>',
        `the system whose export it is: ${ORIGIN_NAMES.join(', ')}`,
        oneOf(...ORIGIN_NAMES),
      ),
    )
    .addOption(option('--hashes <file>', 'the password hashes that Auth0 exports apart', nonEmpty))
    .addOption(
      option('--hash-parameters <file>', 'the password hash parameters of a Firebase project', nonEmpty),
    )
    .action(importUsers)
}

interface ExportOptions extends DatabaseOptions {
  readonly passwordHashes?: boolean
  readonly file?: string
}

const exportToFile = async (exports: Exports, file: string, contents: ExportContents): Promise<void> => {
  let users = 0
  async function* texts() {
    for await (const page of exports.pages(contents)) {
      users += page.length
      yield toLines(page.map(user => serializeExportedUser(user, contents)))
    }
  }
  await writeAtomically({ namedBy: '--file', path: file }, texts(), stopSignal())
  print(false, null, [`${count(users, 'user')} in ${file}`])
}

const exportUsers = ({ passwordHashes = false, file, ...options }: ExportOptions): Promise<void> =>
  withStore(options, async ({ exports }) => {
    const contents = { withHash: passwordHashes }
    if (file !== undefined) return exportToFile(exports, file, contents)
    for await (const page of exports.pages(contents))
      await write(toLines(page.map(user => serializeExportedUser(user, contents))))
  })

const addExport = (users: Command): void => {
  databaseCommand(users, 'export', 'Write every user as a line of JSON, in order of creation')
    .option(
      '--password-hashes',
      'include password hashes, second factors and passkeys, to import them elsewhere',
    )
    .addOption(
      option(
        '--file <file>',
        'write to a file that only its owner can read, instead of standard output',
        nonEmpty,
      ),
    )
    .action(exportUsers)
}

const get = (idOrEmail: string, options: StoreOptions): Promise<void> =>
  withStore(options, async ({ users }) => printUser(options.json, await users.find(idOrEmail)))

const setDisabled =
  (disabled: boolean) =>
  (idOrEmail: string, options: StoreOptions): Promise<void> =>
    withStore(options, async ({ users }) => {
      const { id } = await users.find(idOrEmail)
      printUser(options.json, await users.update(id, { disabled }, OPERATOR))
    })

const setRoles = async (
  idOrEmail: string,
  given: readonly string[],
  options: StoreOptions,
): Promise<void> => {
  const { roles } = await validated({ roles: given }, ({ fieldProperties, Strict }) =>
    Strict(fieldProperties({ user: null, app: null }, ['roles'])),
  )
  await withStore(options, async ({ users }) => {
    const { id } = await users.find(idOrEmail)
    printUser(options.json, await users.update(id, { roles }, OPERATOR))
  })
}

const remove = (idOrEmail: string, options: StoreOptions): Promise<void> =>
  withStore(options, async ({ users }) => {
    const { id, email } = await users.find(idOrEmail)
    await users.remove(id, OPERATOR)
    if (!options.json) print(false, null, [`${email} (${id}) and all their data were removed`])
  })

export const usersCommands = (program: Command): void => {
  const users = program.command('users').description('Manage users')
  addList(users)
  addCreate(users)
  storeCommand(users, 'get <user>', 'Show a user; <user> is an id or an e-mail').action(get)
  storeCommand(users, 'disable <user>', 'Disable a user, which ends all their sessions').action(
    setDisabled(true),
  )
  storeCommand(users, 'enable <user>', 'Enable a user').action(setDisabled(false))
  storeCommand(
    users,
    'set-roles <user> [roles...]',
    'Replace the roles of a user; without any, the user has none',
  ).action(setRoles)
  storeCommand(users, 'delete <user>', 'Remove a user and all their data, without confirmation').action(
    remove,
  )
  addExport(users)
  addImport(users)
}
