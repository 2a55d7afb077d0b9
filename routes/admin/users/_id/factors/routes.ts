import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { adminActor } from '#routes/request-context'
import { ErrorOf, IdParams } from '#routes/schemas'

const factorsOfUser: FastifyPluginAsyncTypebox = async app => {
  const { signIns } = app.services

  app.delete(
    '',
    {
      config: { scope: 'users:identity' },
      schema: {
        operationId: 'deleteUserFactors',
        summary: 'Remove the authenticator app, recovery codes and passkeys of a user who has lost them',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorOf('userNotFound') },
      },
    },
    async (request, reply) => {
      await signIns.removeFactors(request.validatedData.params.id, adminActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default factorsOfUser
