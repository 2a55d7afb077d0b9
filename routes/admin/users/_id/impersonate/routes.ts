import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { adminActor, adminKeyOf, clientOf } from '#routes/request-context'
import { ErrorOf, IdParams, SignedIn } from '#routes/schemas'
import { serializeSignedIn } from '#routes/signed-in'

const impersonate: FastifyPluginAsyncTypebox = async app => {
  const { impersonation } = app.services

  app.post(
    '',
    {
      config: { scope: 'users:impersonate' },
      schema: {
        operationId: 'impersonateUser',
        summary: 'Impersonate a user for an hour; logged as an event, sets no cookie',
        params: IdParams,
        response: { 201: SignedIn, 403: ErrorOf('accountDisabled'), 404: ErrorOf('userNotFound') },
      },
    },
    async (request, reply) => {
      const { id } = request.validatedData.params
      const result = await impersonation.begin(
        id,
        adminKeyOf(request),
        adminActor(request),
        clientOf(request),
      )
      reply.code(201).header('cache-control', 'no-store')
      return serializeSignedIn(result)
    },
  )
}

export default impersonate
