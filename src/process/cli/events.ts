/** `events`: the audit log. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import { canonicalId } from '#base/ids'
import { integer, oneOf, type Reader, SettingError } from '#base/settings/readers'
import { type AuditLog, EVENT_SORTS, type EventSort } from '#core/audit-log/audit-log'
import type { AuditEvent } from '#core/audit-log/event'
import { serializeEvent } from '#core/audit-log/event'
import type { EventFilter } from '#core/audit-log/listing'
import type { Users } from '#core/users/users'
import { eventSchemasOf } from '#feature/assembly'
import { nonEmpty, option, type StoreOptions, storeCommand, timestamp } from '#feature/commands/options'
import { print, printNext, printStatus, stopSignal, table, write } from '#feature/commands/output'
import { allFeatures } from '#features/built-in'
import { withStore } from './store.ts'

interface EventsOptions extends StoreOptions {
  readonly user?: string
  readonly type?: string
  readonly after?: number
  readonly before?: number
  readonly limit: number
  readonly cursor?: string
  readonly sort: EventSort
  readonly follow?: boolean
}

const EVENT_TYPES = Object.keys(eventSchemasOf(allFeatures()))

const eventType: Reader<string> = text => {
  if (!EVENT_TYPES.includes(text)) throw new SettingError(`must be one of ${EVENT_TYPES.join(', ')}`)
  return text
}

/** An id is not looked up, because events outlive their users. */
const userIdOf = async (users: Users, idOrEmail: string): Promise<string> =>
  idOrEmail.includes('@') ? (await users.find(idOrEmail)).id : canonicalId(idOrEmail)

const COLUMNS = ['time', 'type', 'user', 'by', 'address', 'details']

const row = (event: AuditEvent<string | null>): string[] => {
  const { at, type, userId, actor, ip, details } = serializeEvent(event)
  const by = actor.id === null || actor.id === userId ? actor.type : `${actor.type} ${actor.id}`
  return [at, type, userId ?? '-', by, ip ?? '-', details === null ? '' : JSON.stringify(details)]
}

const filterOf = async (
  users: Users,
  { user, type, after, before }: EventsOptions,
): Promise<EventFilter> => ({
  ...(user !== undefined && { userId: await userIdOf(users, user) }),
  ...(type !== undefined && { type }),
  ...(after !== undefined && { after }),
  ...(before !== undefined && { before }),
})

/** Milliseconds between polls for new events, and the events of one query. */
const POLL_INTERVAL = 1_000
const PAGE = 100

/** Writes events as they become visible, one per line, from `cursor` or by default from now on, until Ctrl-C. */
const follow = async (
  auditLog: AuditLog,
  filter: EventFilter,
  { cursor, json }: EventsOptions,
): Promise<void> => {
  const signal = stopSignal('Stopping')
  let next = cursor ?? (await auditLog.end())
  while (!signal.aborted) {
    const page = await auditLog.list({ filter, sort: 'at', limit: PAGE, cursor: next })
    for (const event of page.events)
      await write(`${json ? JSON.stringify(serializeEvent(event)) : table([row(event)])}\n`)
    next = page.nextCursor ?? next
    if (page.events.length < PAGE) await sleep(POLL_INTERVAL, undefined, { signal }).catch(() => undefined)
  }
  printStatus(`To continue from here: --cursor ${next}`)
}

const list = (options: EventsOptions): Promise<void> =>
  withStore(options, async ({ users, auditLog }) => {
    const filter = await filterOf(users, options)
    if (options.follow) return follow(auditLog, filter, options)
    const { limit, cursor, sort, json } = options
    const page = await auditLog.list({ filter, limit, cursor, sort })
    const { nextCursor } = page
    const body = { results: page.events.map(serializeEvent), nextCursor }
    print(json, body, table([COLUMNS, ...page.events.map(row)]))
    if (!json) printNext(nextCursor)
  })

export const eventsCommand = (program: Command): void => {
  storeCommand(program, 'events', 'Show the audit log, newest first, page by page, or follow it')
    .addOption(option('--user <user>', 'of this user: an id, or the e-mail of an existing user', nonEmpty))
    .addOption(option('--type <type>', EVENT_TYPES.join(', '), eventType))
    .addOption(option('--after <timestamp>', 'later than this, such as 2026-01-31T09:30:00Z', timestamp))
    .addOption(option('--before <timestamp>', 'earlier than this', timestamp))
    .addOption(option('--limit <number>', 'events per page, 1 to 100', integer(1, 100)).default(20))
    .addOption(option('--cursor <cursor>', 'the cursor that the previous page ended with', nonEmpty))
    .addOption(
      option(
        '--sort <order>',
        `${EVENT_SORTS.join(', ')}: newest first, or in order of visibility`,
        oneOf(...EVENT_SORTS),
      ).default('-at'),
    )
    .option('--follow', 'write new events as they appear, from now or from --cursor on, until Ctrl-C')
    .action(list)
}
