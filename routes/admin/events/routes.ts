import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { adminEventsProperties, eventsResponses, sendEvents } from '../../events.ts'
import { adminKeyOf } from '../../request-context.ts'
import { auditEvent, Strict } from '../../schemas.ts'
import { serializeEvent } from '../../serializers.ts'

const events: FastifyPluginAsyncTypebox = async app => {
  const { eventSchemas } = app.services

  app.get(
    '',
    {
      config: { scope: 'events:read', compress: true },
      schema: {
        operationId: 'listEvents',
        summary: 'List the audit log, newest first, or follow it',
        querystring: Strict(adminEventsProperties(Object.keys(eventSchemas))),
        response: eventsResponses(auditEvent(eventSchemas), 'AuditEventPage'),
      },
    },
    (request, reply) =>
      sendEvents(request, reply, {
        query: request.validatedData.query,
        serialize: serializeEvent,
        stream: {
          credential: adminKeyOf(request).id,
          network: null,
          isAuthenticated: () => app.requestAuthentication.isAdmin(request),
        },
      }),
  )
}

export default events
