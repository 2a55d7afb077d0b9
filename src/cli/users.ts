import type { Command } from 'commander'
import { OPERATOR } from '../audit-log/event.ts'
import { type StoreOptions, storeCommand } from './options.ts'
import { print } from './output.ts'
import { withStore } from './store.ts'
import { findUser } from './user-argument.ts'
import { printUser } from './user-output.ts'
import { usersCreate } from './users-create.ts'
import { usersExport } from './users-export.ts'
import { usersImport } from './users-import.ts'
import { usersList } from './users-list.ts'

const get = (idOrEmail: string, options: StoreOptions): Promise<void> =>
  withStore(options, async ({ users }) => printUser(options.json, await findUser(users, idOrEmail)))

const setDisabled =
  (disabled: boolean) =>
  (idOrEmail: string, options: StoreOptions): Promise<void> =>
    withStore(options, async ({ users }) => {
      const { id } = await findUser(users, idOrEmail)
      printUser(options.json, await users.update(id, { disabled }, OPERATOR))
    })

const remove = (idOrEmail: string, options: StoreOptions): Promise<void> =>
  withStore(options, async ({ users }) => {
    const { id, email } = await findUser(users, idOrEmail)
    await users.remove(id, OPERATOR)
    if (!options.json) print(false, null, [`${email} (${id}) is removed, with all that belonged to them`])
  })

export const usersCommands = (program: Command): void => {
  const users = program.command('users').description('Users, as administrators see them')
  usersList(users)
  usersCreate(users)
  storeCommand(users, 'get <user>', 'Show a user; <user> is an id or an e-mail').action(get)
  storeCommand(users, 'disable <user>', 'Disable a user, who is signed out at once').action(setDisabled(true))
  storeCommand(users, 'enable <user>', 'Enable a user, who can sign in again').action(setDisabled(false))
  storeCommand(
    users,
    'delete <user>',
    'Remove a user with all that belongs to them; nothing is asked',
  ).action(remove)
  usersExport(users)
  usersImport(users)
}
