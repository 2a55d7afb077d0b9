import type { Command } from 'commander'
import { integer, type Reader, SettingFault } from '../setting-readers.ts'
import { type AuditEvent, EVENT_TYPES, type EventType } from '../users/event.ts'
import type { Users } from '../users/users.ts'
import { presentEvent } from '../users/views.ts'
import { moment, option, type StoreOptions, storeCommand, words } from './options.ts'
import { print, table, tell } from './output.ts'
import { withStore } from './store.ts'
import { findUser } from './user-argument.ts'

interface EventsOptions extends StoreOptions {
  readonly user?: string
  readonly type?: EventType
  readonly after?: number
  readonly before?: number
  readonly limit: number
  readonly cursor?: string
}

const isEventType = (text: string): text is EventType => (EVENT_TYPES as readonly string[]).includes(text)

const eventType: Reader<EventType> = (text = '') => {
  if (!isEventType(text)) throw new SettingFault(`must be one of ${EVENT_TYPES.join(', ')}`)
  return text
}

/** Of an id nobody is asked for: events outlive their users. */
const userIdOf = async (users: Users, idOrEmail: string): Promise<string> =>
  idOrEmail.includes('@') ? (await findUser(users, idOrEmail)).id : idOrEmail.toLowerCase()

const COLUMNS = ['moment', 'type', 'user', 'by', 'address', 'details']

const row = (event: AuditEvent): string[] => {
  const { at, type, userId, actor, ip, details } = presentEvent(event)
  const by = actor.id === null || actor.id === userId ? actor.type : `${actor.type} ${actor.id}`
  return [at, type, userId, by, ip ?? '-', details === null ? '' : JSON.stringify(details)]
}

const list = ({ user, type, after, before, limit, cursor, ...options }: EventsOptions): Promise<void> =>
  withStore(options, async ({ users, events }) => {
    const filter = {
      ...(user !== undefined && { userId: await userIdOf(users, user) }),
      ...(type !== undefined && { type }),
      ...(after !== undefined && { after }),
      ...(before !== undefined && { before }),
    }
    const page = await events.list(filter, limit, cursor)
    const { nextCursor } = page
    const body = { results: page.events.map(presentEvent), nextCursor }
    print(options.json, body, table([COLUMNS, ...page.events.map(row)]))
    if (!options.json && nextCursor !== null) tell(`The next page: --cursor ${nextCursor}`)
  })

export const eventsCommand = (program: Command): void => {
  storeCommand(program, 'events', 'Show the audit log, newest first, page by page')
    .addOption(option('--user <user>', 'of this user: an id, or an e-mail of one who is still there', words))
    .addOption(option('--type <type>', EVENT_TYPES.join(', '), eventType))
    .addOption(option('--after <moment>', 'later than this, such as 2026-01-31T09:30:00Z', moment))
    .addOption(option('--before <moment>', 'earlier than this', moment))
    .addOption(option('--limit <number>', 'events of a page, 1 to 100', integer(20, 1, 100)).default(20))
    .addOption(option('--cursor <cursor>', 'where the page before ended', words))
    .action(list)
}
