/** `keys create|list|revoke`: admin keys of the store. */
import type { Command } from 'commander'
import { canonicalId } from '#base/ids'
import { OPERATOR } from '#core/audit-log/event'
import { type AdminKey, serializeAdminKey } from '#core/auth/admin-key'
import { type ScopeDescriptions, sortedScopes } from '#core/auth/scopes'
import {
  commandGroup,
  nonEmpty,
  option,
  type StoreOptions,
  storeCommand,
  textList,
  timestamp,
  validated,
} from '#feature/commands/options'
import { print, printStatus, table } from '#feature/commands/output'
import type { WithServices } from '#feature/declaration'
import { type AdminKeys, ALL_RIGHTS, serializeCreatedAdminKey } from './admin-keys.ts'

const COLUMNS = ['id', 'created', 'expires', 'last request', 'prefix', 'created by', 'scopes', 'name']

const row = (key: AdminKey): string[] => {
  const { id, createdAt, expiresAt, lastUsedAt, prefix, createdBy, name } = serializeAdminKey(key)
  const times = [createdAt, expiresAt ?? '-', lastUsedAt ?? '-']
  return [id, ...times, prefix, createdBy ?? 'system', key.scopes.join(','), name]
}

interface CreateOptions extends StoreOptions {
  readonly name: string
  readonly scopes: readonly string[]
  readonly expires?: number
}

/** Adds the commands to the group `keys`. @param declared every scope of admin keys. */
export const adminKeyCommands = (
  program: Command,
  withServices: WithServices<{ adminKeys: AdminKeys }>,
  declared: ScopeDescriptions,
): void => {
  const create = async ({ name, scopes, expires, ...options }: CreateOptions): Promise<void> => {
    const expiresAt = expires === undefined ? null : new Date(expires).toISOString()
    const valid = await validated({ name, scopes, expiresAt }, ({ NewAdminKey }) => NewAdminKey(declared))
    const request = {
      name: valid.name,
      scopes: sortedScopes(declared, valid.scopes),
      expiresAt: expires ?? null,
    }
    await withServices(options, async ({ adminKeys }) => {
      const created = await adminKeys.create(request, ALL_RIGHTS, OPERATOR)
      print(options.json, serializeCreatedAdminKey(created), [created.token])
      if (!options.json) printStatus(`The key ${created.adminKey.id} is shown only now`)
    })
  }

  const list = (options: StoreOptions): Promise<void> =>
    withServices(options, async ({ adminKeys }) => {
      const found = await adminKeys.list()
      print(options.json, { results: found.map(serializeAdminKey) }, table([COLUMNS, ...found.map(row)]))
    })

  const revoke = (id: string, options: StoreOptions): Promise<void> =>
    withServices(options, async ({ adminKeys }) => {
      await adminKeys.revoke(canonicalId(id), ALL_RIGHTS, OPERATOR)
      if (!options.json) print(false, null, [`The admin key ${id} is revoked`])
    })

  const keys = commandGroup(program, 'keys')
  storeCommand(keys, 'create', 'Create an admin key with scopes, and print it')
    .addOption(option('--name <name>', 'by which you recognise it', nonEmpty).makeOptionMandatory())
    .addOption(option('--scopes <scopes>', Object.keys(declared).join(','), textList).makeOptionMandatory())
    .addOption(
      option(
        '--expires <timestamp>',
        'when it expires, such as 2027-01-31T09:30:00Z; default: never',
        timestamp,
      ),
    )
    .action(create)
  storeCommand(keys, 'list', 'List the admin keys of the store, newest first').action(list)
  storeCommand(
    keys,
    'revoke <id>',
    'Revoke an admin key, and end the impersonated sessions that it opened',
  ).action(revoke)
}
