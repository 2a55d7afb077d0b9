import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { eventsProperties, eventsResponses, sendEvents } from '#routes/events'
import { accountEvent, Strict } from '#routes/schemas'
import { serializeOwnEvent } from '#routes/serializers'

const events: FastifyPluginAsyncTypebox = async app => {
  const { eventSchemas } = app.services

  app.get(
    '',
    {
      config: { scope: 'account:read', compress: true },
      schema: {
        operationId: 'listOwnEvents',
        summary: 'List the events of your account, newest first, or follow them',
        querystring: Strict(eventsProperties(Object.keys(eventSchemas))),
        response: eventsResponses(accountEvent(eventSchemas), 'AccountEventPage'),
      },
    },
    (request, reply) =>
      sendEvents(request, reply, {
        query: { ...request.validatedData.query, userId: request.user.id },
        serialize: serializeOwnEvent,
        stream: {
          credential: request.user.id,
          network: request.clientNetwork,
          isAuthenticated: () => app.requestAuthentication.isUser(request),
        },
      }),
  )
}

export default events
