/** `clients …`: clients of the authorization server on the command line. */
import type { Command } from 'commander'
import { canonicalId } from '#base/ids'
import { OPERATOR } from '#core/audit-log/event'
import type { ScopeDescriptions } from '#core/auth/scopes'
import {
  commandGroup,
  nonEmpty,
  option,
  type StoreOptions,
  storeCommand,
  textList,
  validated,
} from '#feature/commands/options'
import { print, printStatus, table } from '#feature/commands/output'
import type { WithServices } from '#feature/declaration'
import { type Client, type NewClientOptions, newClientMetadata, serializeClient } from './client.ts'
import type { Clients } from './clients.ts'
import { NewClient } from './input-schemas.ts'

const COLUMNS = ['id', 'created', 'authentication', 'grant types', 'scopes', 'name']

/** Clients that one look at the store reads. */
const PAGE = 100

const row = (client: Client): string[] => {
  const { id, createdAt, authMethod, grantTypes, scopes, adminScopes, name } = serializeClient(client)
  return [id, createdAt, authMethod, grantTypes.join(','), [...scopes, ...adminScopes].join(','), name]
}

interface CreateOptions extends StoreOptions {
  readonly name: string
  readonly grants?: readonly string[]
  readonly auth?: string
  readonly redirects?: readonly string[]
  readonly scopes?: readonly string[]
  readonly adminScopes?: readonly string[]
}

/** Without the options that are not given. */
const inputOf = ({ name, grants, auth, redirects, scopes, adminScopes }: CreateOptions) => ({
  name,
  ...(grants !== undefined && { grantTypes: grants }),
  ...(auth !== undefined && { authMethod: auth }),
  ...(redirects !== undefined && { redirectUris: redirects }),
  ...(scopes !== undefined && { scopes }),
  ...(adminScopes !== undefined && { adminScopes }),
})

/** Adds the group `clients`. @param declared the scopes of admin keys. */
export const clientCommands = (
  program: Command,
  withServices: WithServices<{ clients: Clients }>,
  declared: ScopeDescriptions,
): void => {
  const create = async ({ database, json, ...options }: CreateOptions): Promise<void> => {
    const input = await validated(inputOf(options), () => NewClient(Object.keys(declared)))
    const metadata = newClientMetadata(input as NewClientOptions)
    await withServices({ database }, async ({ clients }) => {
      const { client, secret } = await clients.create(metadata, null, OPERATOR)
      print(json, { ...serializeClient(client), secret }, secret === null ? [client.id] : [client.id, secret])
      if (!json && secret !== null) printStatus('The secret of the client is shown only now')
    })
  }

  const list = (options: StoreOptions): Promise<void> =>
    withServices(options, async ({ clients }) => {
      const found: Client[] = []
      let cursor: string | undefined
      do {
        const page = await clients.list(PAGE, cursor)
        found.push(...page.results)
        cursor = page.nextCursor ?? undefined
      } while (cursor !== undefined)
      print(options.json, { results: found.map(serializeClient) }, table([COLUMNS, ...found.map(row)]))
    })

  const rotateSecret = (id: string, options: StoreOptions): Promise<void> =>
    withServices(options, async ({ clients }) => {
      const { secret, formerExpiresAt } = await clients.rotateSecret(canonicalId(id), OPERATOR)
      const formerSecretExpiresAt = new Date(formerExpiresAt).toISOString()
      print(options.json, { secret, formerSecretExpiresAt }, [secret])
      if (!options.json) printStatus(`The former secret is valid, too, until ${formerSecretExpiresAt}`)
    })

  const remove = (id: string, options: StoreOptions): Promise<void> =>
    withServices(options, async ({ clients }) => {
      await clients.remove(canonicalId(id), OPERATOR)
      if (!options.json) print(false, null, [`The client ${id} is deleted`])
    })

  const group = commandGroup(program, 'clients').description('Clients of the authorization server')
  storeCommand(group, 'create', 'Register a client, and print its id and secret')
    .addOption(option('--name <name>', 'which users see', nonEmpty).makeOptionMandatory())
    .addOption(option('--grants <types>', 'grant types, separated by commas', textList))
    .addOption(option('--auth <method>', 'how it authenticates; default: client_secret_basic', nonEmpty))
    .addOption(option('--redirects <uris>', 'redirect URIs, separated by commas', textList))
    .addOption(option('--scopes <scopes>', 'what it may ask users for, separated by commas', textList))
    .addOption(option('--admin-scopes <scopes>', 'scopes of admin keys for tokens of its own', textList))
    .action(create)
  storeCommand(group, 'list', 'List the clients, oldest first').action(list)
  storeCommand(
    group,
    'rotate-secret <id>',
    'Print a new secret. The current one is valid for another day',
  ).action(rotateSecret)
  storeCommand(group, 'delete <id>', 'Delete a client. Its tokens and grants end at once').action(remove)
}
