import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { EVENT_SORTS, type EventSort } from '../../../src/audit-log/audit-log.ts'
import { earlierThan, laterThan } from '../../../src/validation/formats.ts'
import { linkToNext } from '../../response-headers.ts'
import { auditEvent, ErrorBody, InputId, pageProperties, Strict, TimeFilter } from '../../schemas.ts'
import { serializeEvent } from '../../serializers.ts'

const eventsQuery = (types: readonly string[]) =>
  Strict({
    ...pageProperties,
    sort: Type.Unsafe<EventSort>({
      type: 'string',
      enum: [...EVENT_SORTS],
      default: '-at',
      description:
        'Newest first, or with `at` in the order in which events became visible, for consumers: then `nextCursor` is never `null`, and no event is skipped',
    }),
    userId: Type.Optional(InputId),
    type: Type.Optional(Type.Unsafe<string>({ type: 'string', enum: [...types] })),
    after: TimeFilter('Strictly later'),
    before: TimeFilter('Strictly earlier'),
  })

const NextEventCursor = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: '`null` on the last page; with `sort=at` always a cursor: repeat the request later with it',
  examples: [null],
})

const events: FastifyPluginAsyncTypebox = async app => {
  const { auditLog, eventSchemas } = app.services

  app.get(
    '',
    {
      config: { scope: 'events:read', compress: true },
      schema: {
        operationId: 'listEvents',
        summary: 'List the audit log, newest first, or follow it',
        querystring: eventsQuery(Object.keys(eventSchemas)),
        response: {
          200: Type.Object(
            { results: Type.Array(auditEvent(eventSchemas)), nextCursor: NextEventCursor },
            { title: 'AuditEventPage' },
          ),
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const { limit, cursor, sort, after, before, ...others } = request.validatedData.query
      const filter = {
        ...others,
        ...(after !== undefined && { after: laterThan(after) }),
        ...(before !== undefined && { before: earlierThan(before) }),
      }
      const { events, nextCursor } = await auditLog.list({ filter, limit, cursor, sort })
      linkToNext(request, reply.header('cache-control', 'no-store'), nextCursor)
      return { results: events.map(serializeEvent), nextCursor }
    },
  )
}

export default events
