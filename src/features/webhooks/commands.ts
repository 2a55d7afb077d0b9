/** `webhooks …`: webhooks on the command line. */
import type { Command } from 'commander'
import { canonicalId } from '#base/ids'
import { type Reader, SettingError } from '#base/settings/readers'
import { OPERATOR } from '#core/audit-log/event'
import {
  commandGroup,
  nonEmpty,
  option,
  type StoreOptions,
  storeCommand,
  textList,
} from '#feature/commands/options'
import { print, printStatus, table } from '#feature/commands/output'
import type { WithServices } from '#feature/declaration'
import { serializeAttempt, serializeWebhook, type Webhook, type WebhookAttempt } from './webhook.ts'
import type { Webhooks } from './webhooks.ts'

const COLUMNS = ['id', 'created', 'state', 'failures', 'next attempt', 'types', 'url', 'description']

const row = (webhook: Webhook): string[] => {
  const { id, createdAt, state, failures, retryAt, types, url, description } = serializeWebhook(webhook)
  return [
    ...[id, createdAt, state, String(failures), retryAt ?? '-'],
    ...[types?.join(',') ?? 'all', url, description ?? ''],
  ]
}

const ATTEMPT_COLUMNS = ['at', 'event', 'type', 'attempt', 'status', 'outcome', 'milliseconds']

const attemptRow = (attempt: WebhookAttempt): string[] => {
  const { at, eventId, type, attempt: number, status, outcome, durationMs } = serializeAttempt(attempt)
  return [at, eventId, type, String(number), String(status ?? '-'), outcome, String(durationMs)]
}

interface CreateOptions extends StoreOptions {
  readonly types?: readonly string[]
  readonly description?: string
}

interface ResumeOptions extends StoreOptions {
  readonly skip?: boolean
}

interface ReplayOptions extends StoreOptions {
  readonly from: string
}

const linesOf = (webhook: Webhook): string[] => table([COLUMNS, row(webhook)])

const printWebhook = ({ json }: StoreOptions, webhook: Webhook): void =>
  print(json, serializeWebhook(webhook), linesOf(webhook))

/** Adds the group `webhooks`. @param eventTypes every type of event. */
export const webhookCommands = (
  program: Command,
  withServices: WithServices<{ webhooks: Webhooks }>,
  eventTypes: readonly string[],
): void => {
  const types: Reader<readonly string[]> = text => {
    const chosen = textList(text)
    const unknown = chosen.find(type => !eventTypes.includes(type))
    if (unknown !== undefined) throw new SettingError('must be types of events, separated by commas', unknown)
    return [...new Set(chosen)]
  }

  const create = (url: string, { types, description, ...options }: CreateOptions): Promise<void> =>
    withServices(options, async ({ webhooks }) => {
      const chosen = { url, types: types ?? null, description: description ?? null }
      const { webhook, secret } = await webhooks.create(chosen, OPERATOR)
      print(options.json, { ...serializeWebhook(webhook), secret }, [secret])
      if (!options.json) printStatus(`The secret of the webhook ${webhook.id} is shown only now`)
    })

  const list = (options: StoreOptions): Promise<void> =>
    withServices(options, async ({ webhooks }) => {
      const found = await webhooks.list()
      print(options.json, { results: found.map(serializeWebhook) }, table([COLUMNS, ...found.map(row)]))
    })

  const remove = (id: string, options: StoreOptions): Promise<void> =>
    withServices(options, async ({ webhooks }) => {
      await webhooks.remove(canonicalId(id), OPERATOR)
      if (!options.json) print(false, null, [`The webhook ${id} is deleted`])
    })

  const attempts = (id: string, options: StoreOptions): Promise<void> =>
    withServices(options, async ({ webhooks }) => {
      const found = await webhooks.attempts(canonicalId(id))
      const lines = table([ATTEMPT_COLUMNS, ...found.map(attemptRow)])
      print(options.json, { results: found.map(serializeAttempt) }, lines)
    })

  const rotateSecret = (id: string, options: StoreOptions): Promise<void> =>
    withServices(options, async ({ webhooks }) => {
      const { secret, formerExpiresAt } = await webhooks.rotateSecret(canonicalId(id), OPERATOR)
      const formerSecretExpiresAt = new Date(formerExpiresAt).toISOString()
      print(options.json, { secret, formerSecretExpiresAt }, [secret])
      if (!options.json) printStatus(`The former secret signs, too, until ${formerSecretExpiresAt}`)
    })

  const ping = (id: string, options: StoreOptions): Promise<void> =>
    withServices(options, async ({ webhooks }) => {
      const pingId = await webhooks.ping(canonicalId(id))
      print(options.json, { id: pingId }, [`The service sends ${pingId}: see webhooks attempts ${id}`])
    })

  const resume = (id: string, { skip = false, ...options }: ResumeOptions): Promise<void> =>
    withServices(options, async ({ webhooks }) =>
      printWebhook(options, await webhooks.resume(canonicalId(id), skip, OPERATOR)),
    )

  const replay = (id: string, { from, ...options }: ReplayOptions): Promise<void> =>
    withServices(options, async ({ webhooks }) => {
      const { webhook, removedBefore: before } = await webhooks.replay(canonicalId(id), from, OPERATOR)
      const removedBefore = before === null ? null : new Date(before).toISOString()
      print(options.json, { ...serializeWebhook(webhook), removedBefore }, linesOf(webhook))
      if (!options.json && removedBefore !== null)
        printStatus(`Events before ${removedBefore} may have been removed`)
    })

  const pause = (id: string, options: StoreOptions): Promise<void> =>
    withServices(options, async ({ webhooks }) =>
      printWebhook(options, await webhooks.pause(canonicalId(id), OPERATOR)),
    )

  const group = commandGroup(program, 'webhooks').description('Create, watch and change webhooks')
  storeCommand(group, 'create <url>', 'Create a webhook, and print its secret')
    .addOption(option('--types <types>', 'types of events, separated by commas; default: all', types))
    .addOption(option('--description <text>', 'by which you recognise it', nonEmpty))
    .action(create)
  storeCommand(group, 'list', 'List the webhooks').action(list)
  storeCommand(group, 'delete <id>', 'Delete a webhook').action(remove)
  storeCommand(group, 'attempts <id>', 'List the last 100 attempts to deliver, newest first').action(attempts)
  storeCommand(
    group,
    'rotate-secret <id>',
    'Print a new secret. The former one signs, too, for a day',
  ).action(rotateSecret)
  storeCommand(group, 'ping <id>', 'Let the service send a message without an event').action(ping)
  storeCommand(group, 'pause <id>', 'Pause a webhook. Its events wait').action(pause)
  storeCommand(group, 'resume <id>', 'Deliver what waits, also to a webhook that is disabled')
    .option('--skip', 'leave out the event that fails')
    .action(resume)
  storeCommand(group, 'replay <id>', 'Deliver again from a time or an event on')
    .addOption(option('--from <place>', 'a timestamp, or the id of an event', nonEmpty).makeOptionMandatory())
    .action(replay)
}
