import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { adminActor } from '../../../../request-context.ts'
import { ErrorBody, IdParams } from '../../../../schemas.ts'

const sessions: FastifyPluginAsyncTypebox = async app => {
  app.delete(
    '',
    {
      config: { scope: 'users:write' },
      schema: {
        operationId: 'deleteUserSessions',
        summary: 'End all sessions of a user',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      await app.services.sessions.revokeAll(request.validatedData.params.id, adminActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default sessions
