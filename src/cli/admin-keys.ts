/** `keys create|list|revoke`: admin keys of the store. */
import type { Command } from 'commander'
import { type AdminKeys, ALL_RIGHTS, adminKeys as feature } from '../admin-keys/admin-keys.ts'
import { serializeAdminKey, serializeCreatedAdminKey } from '../admin-keys/serializers.ts'
import { OPERATOR } from '../audit-log/event.ts'
import type { AdminKey } from '../auth/admin-key.ts'
import { sortedScopes } from '../auth/scopes.ts'
import { allFeatures } from '../built-in-features.ts'
import type { Reader } from '../config/readers.ts'
import { adminScopesOf } from '../feature.ts'
import { withFeatureServices } from './feature-services.ts'
import { nonEmpty, option, type StoreOptions, storeCommand, timestamp } from './options.ts'
import { print, printStatus, table } from './output.ts'
import { validated } from './validated-input.ts'

const SCOPES = adminScopesOf(allFeatures())

/** The schema checks them. */
const scopes: Reader<readonly string[]> = text => text.split(',').map(scope => scope.trim())

const withAdminKeys = (options: StoreOptions, use: (adminKeys: AdminKeys) => Promise<void>): Promise<void> =>
  withFeatureServices(feature, options, ({ adminKeys }) => use(adminKeys))

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

const create = async ({ name, scopes, expires, ...options }: CreateOptions): Promise<void> => {
  const expiresAt = expires === undefined ? null : new Date(expires).toISOString()
  const valid = await validated({ name, scopes, expiresAt }, ({ NewAdminKey }) => NewAdminKey(SCOPES))
  const request = { name: valid.name, scopes: sortedScopes(SCOPES, valid.scopes), expiresAt: expires ?? null }
  await withAdminKeys(options, async adminKeys => {
    const created = await adminKeys.create(request, ALL_RIGHTS, OPERATOR)
    print(options.json, serializeCreatedAdminKey(created), [created.token])
    if (!options.json) printStatus(`The key ${created.adminKey.id} is shown only now`)
  })
}

const list = (options: StoreOptions): Promise<void> =>
  withAdminKeys(options, async adminKeys => {
    const found = await adminKeys.list()
    print(options.json, { results: found.map(serializeAdminKey) }, table([COLUMNS, ...found.map(row)]))
  })

const revoke = (id: string, options: StoreOptions): Promise<void> =>
  withAdminKeys(options, async adminKeys => {
    await adminKeys.revoke(id.trim().toLowerCase(), ALL_RIGHTS, OPERATOR)
    if (!options.json) print(false, null, [`The admin key ${id} is revoked`])
  })

/** Adds the commands to the group `keys`. */
export const adminKeyCommands = (keys: Command): void => {
  storeCommand(keys, 'create', 'Create an admin key with scopes, and print it')
    .addOption(option('--name <name>', 'by which you recognise it', nonEmpty).makeOptionMandatory())
    .addOption(option('--scopes <scopes>', Object.keys(SCOPES).join(','), scopes).makeOptionMandatory())
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
