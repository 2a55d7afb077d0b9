import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { earlierThan, laterThan } from '../../../src/input/formats.ts'
import { EVENT_TYPES, type EventType } from '../../../src/users/event.ts'
import { AuditEvent } from '../../event-schema.ts'
import { linkToNext, presentEvent } from '../../presenters.ts'
import { ErrorBody, listProperties, NextCursor, Strict } from '../../schemas.ts'

const QueriedMoment = (description: string) =>
  Type.Optional(Type.String({ format: 'date-time', description }))

const EventsQuery = Strict({
  limit: listProperties.limit,
  cursor: listProperties.cursor,
  userId: Type.Optional(Type.String({ normalize: 'lower', format: 'uuid' })),
  type: Type.Optional(Type.Unsafe<EventType>({ type: 'string', enum: [...EVENT_TYPES] })),
  after: QueriedMoment('Later than this'),
  before: QueriedMoment('Earlier than this'),
})

const EventPage = Type.Object({ results: Type.Array(AuditEvent), nextCursor: NextCursor })

const events: FastifyPluginAsyncTypebox = async app => {
  app.get(
    '',
    {
      schema: {
        summary: 'The audit log, newest first',
        querystring: EventsQuery,
        response: { 200: EventPage, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { limit, cursor, after, before, ...asked } = request.validatedData.query
      const filter = {
        ...asked,
        ...(after !== undefined && { after: laterThan(after) }),
        ...(before !== undefined && { before: earlierThan(before) }),
      }
      const { events, nextCursor } = await app.services.events.list(filter, limit, cursor)
      linkToNext(request, reply.header('cache-control', 'no-store'), nextCursor)
      return { results: events.map(presentEvent), nextCursor }
    },
  )
}

export default events
