/** The audit log's list. */
import type { EventQuery } from '../../users/events.ts'
import { eventsQuery } from '../event-queries.ts'
import type { Statement } from './database.ts'
import { queries, statement } from './queries.ts'

export const eventPage = (query: EventQuery): Statement =>
  statement(eventsQuery(queries.selectFrom('events'), query))
