import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { adminActor } from '#routes/request-context'
import { ErrorOf, IdParams, InputId, SessionList, Strict } from '#routes/schemas'
import { serializeSession } from '#routes/serializers'

const sessions: FastifyPluginAsyncTypebox = async app => {
  app.get(
    '',
    {
      config: { scope: 'users:read' },
      schema: {
        operationId: 'listUserSessions',
        summary: 'List the sessions of a user, newest first, at most 1,000',
        params: IdParams,
        response: { 200: SessionList, 404: ErrorOf('userNotFound') },
      },
    },
    async (request, reply) => {
      const { users, sessions } = app.services
      const { id } = await users.get(request.validatedData.params.id)
      const found = await sessions.list(id)
      reply.header('cache-control', 'no-store')
      return { results: found.map(session => serializeSession(session, null)) }
    },
  )

  app.delete(
    '',
    {
      config: { scope: 'users:write' },
      schema: {
        operationId: 'deleteUserSessions',
        summary: 'End all sessions of a user',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorOf('userNotFound') },
      },
    },
    async (request, reply) => {
      await app.services.sessions.revokeAll(request.validatedData.params.id, adminActor(request))
      return reply.code(204).send(null)
    },
  )

  app.delete(
    '/:sessionId',
    {
      config: { scope: 'users:write' },
      schema: {
        operationId: 'deleteUserSession',
        summary: 'End a session of a user',
        params: Strict({ id: InputId, sessionId: InputId }),
        response: { 204: Type.Null(), 404: ErrorOf('sessionNotFound') },
      },
    },
    async (request, reply) => {
      const { id, sessionId } = request.validatedData.params
      await app.services.sessions.revokeOf(id, sessionId, adminActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default sessions
