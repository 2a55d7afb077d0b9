/** The audit log's list, which never holds the event loop for long. */
import type { AuditEvent } from '../../users/event.ts'
import type { EventQuery } from '../../users/events.ts'
import { eventsQuery } from '../event-queries.ts'
import { toEvent } from '../event-rows.ts'
import { queries } from './queries.ts'
import type { Reader } from './reader.ts'
import type { Task } from './turns.ts'

/** Rows of a user that are looked through at a time for a rare type: about a millisecond. */
const SLICE = 500

/** An index leads to the events of a user, or of a type. For both at once the user's are looked through in slices. */
export function* eventPage(reader: Reader, query: EventQuery): Task<readonly AuditEvent[]> {
  const { type, ...filter } = query.filter
  const read = (part: EventQuery) => reader.all(eventsQuery(queries.selectFrom('events'), part)).map(toEvent)
  if (type === undefined || filter.userId === undefined) return read(query)
  const page: AuditEvent[] = []
  let beforeId = query.beforeId
  for (;;) {
    const slice = read({ filter, beforeId, limit: SLICE })
    page.push(...slice.filter(event => event.type === type))
    beforeId = slice.at(-1)?.id ?? null
    if (slice.length < SLICE || page.length >= query.limit) return page.slice(0, query.limit)
    yield
  }
}
