import type { Command } from 'commander'
import { integer, oneOf } from '../config/readers.ts'
import { SORTS, type Sort } from '../users/listing.ts'
import { serializeAdminUser } from '../users/serializers.ts'
import { canonicalEmail, type User } from '../users/user.ts'
import { option, type StoreOptions, storeCommand, words } from './options.ts'
import { count as counted, print, table, tell } from './output.ts'
import { withStore } from './store.ts'

interface ListOptions extends StoreOptions {
  readonly search?: string
  readonly email?: string
  readonly disabled?: boolean
  readonly limit: number
  readonly cursor?: string
  readonly sort: Sort
  readonly count?: boolean
}

const COLUMNS = ['id', 'created', 'last request', 'state', 'e-mail', 'name']

const row = (user: User): string[] => {
  const { createdAt, lastRequestAt } = serializeAdminUser(user)
  const name = [user.firstName, user.lastName].filter(part => part !== null).join(' ')
  return [user.id, createdAt, lastRequestAt ?? '-', user.disabled ? 'disabled' : 'enabled', user.email, name]
}

const list = ({ search, email, disabled, limit, cursor, sort, count, ...options }: ListOptions) =>
  withStore(options, async ({ users }) => {
    const filter = {
      searchEmail: true,
      ...(search !== undefined && { search }),
      ...(email !== undefined && { email: canonicalEmail(email) }),
      ...(disabled !== undefined && { disabled }),
    }
    const { users: found, nextCursor } = await users.list({ filter, limit, cursor, sort })
    const total = count ? await users.count(filter) : undefined
    const page = { results: found.map(user => serializeAdminUser(user)), nextCursor }
    print(options.json, total === undefined ? page : { ...page, total }, table([COLUMNS, ...found.map(row)]))
    if (options.json) return
    if (total !== undefined) tell(`${counted(total, 'user')} in all`)
    if (nextCursor !== null) tell(`The next page: --cursor ${nextCursor}`)
  })

export const usersList = (users: Command): void => {
  storeCommand(users, 'list', 'List users, page by page')
    .addOption(option('--search <text>', 'the start of a name or of the e-mail, in any letter case', words))
    .addOption(option('--email <e-mail>', 'whoever has this one', words))
    .option('--disabled', 'disabled users alone')
    .option('--no-disabled', 'enabled users alone')
    .addOption(option('--limit <number>', 'users of a page, 1 to 100', integer(20, 1, 100)).default(20))
    .addOption(option('--cursor <cursor>', 'where the page before ended', words))
    .addOption(
      option('--sort <field>', SORTS.join(', '), oneOf('-createdAt', ...SORTS)).default('-createdAt'),
    )
    .option('--count', 'also count all matches')
    .action(list)
}
