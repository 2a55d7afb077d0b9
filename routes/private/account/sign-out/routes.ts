import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { sessionIdOf, userActor } from '../../../request-context.ts'
import { withHeaders } from '../../../response-headers.ts'
import { ErrorBody } from '../../../schemas.ts'

const signOut: FastifyPluginAsyncTypebox = async app => {
  const { sessions } = app.services

  app.post(
    '',
    {
      config: { writeLimit: false },
      schema: {
        operationId: 'signOut',
        summary: 'Sign out: end this session',
        response: { 204: withHeaders(Type.Null(), 'Set-Cookie'), 503: ErrorBody },
      },
    },
    async (request, reply) => {
      await sessions.signOut(request.user.id, sessionIdOf(request), userActor(request))
      return reply.clearAccessToken().code(204).send(null)
    },
  )
}

export default signOut
