import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { actorOf } from '#routes/request-context'
import { withHeaders } from '#routes/response-headers'

const signOut: FastifyPluginAsyncTypebox = async app => {
  const { sessions } = app.services

  app.post(
    '',
    {
      config: { writeLimit: false, isOpenToSeveralUsers: true },
      schema: {
        operationId: 'signOut',
        summary: 'Sign out: end this session, and those of further cookies ACCESS_TOKEN',
        response: { 204: withHeaders(Type.Null(), 'Set-Cookie') },
      },
    },
    async (request, reply) => {
      for (const session of await app.requestAuthentication.sessionsOf(request))
        await sessions.signOut(session.cachedUser.user.id, session.credentialId, actorOf(session, request))
      return reply.clearAccessToken().code(204).send(null)
    },
  )
}

export default signOut
