import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { sessionIdOf, userActor } from '#routes/request-context'
import { withHeaders } from '#routes/response-headers'
import { ErrorOf, IdParams, SessionList, Strict } from '#routes/schemas'
import { serializeSession } from '#routes/serializers'

const Scope = Strict({
  scope: Type.Unsafe<'others' | 'all'>({ type: 'string', enum: ['others', 'all'], default: 'others' }),
})

const sessions: FastifyPluginAsyncTypebox = async app => {
  const { sessions } = app.services

  app.get(
    '',
    {
      config: { compress: true },
      schema: {
        operationId: 'listSessions',
        summary: 'List your sessions, newest first, at most 1,000',
        response: { 200: SessionList },
      },
    },
    async (request, reply) => {
      const principal = request.requirePrincipal()
      const found = await sessions.list(principal.cachedUser.user.id)
      reply.header('cache-control', 'no-store')
      return { results: found.map(session => serializeSession(session, principal)) }
    },
  )

  app.delete(
    '',
    {
      config: { writeLimit: false },
      schema: {
        operationId: 'deleteSessions',
        summary: 'End your other sessions, or all of them',
        querystring: Scope,
        response: { 204: withHeaders(Type.Null(), 'Set-Cookie') },
      },
    },
    async (request, reply) => {
      const all = request.validatedData.query.scope === 'all'
      await sessions.revokeOwn(request.user.id, userActor(request), all ? null : sessionIdOf(request))
      if (all) reply.clearAccessToken()
      return reply.code(204).send(null)
    },
  )

  app.delete(
    '/:id',
    {
      config: { writeLimit: false },
      schema: {
        operationId: 'deleteSession',
        summary: 'End one of your sessions',
        params: IdParams,
        response: { 204: withHeaders(Type.Null(), 'Set-Cookie'), 404: ErrorOf('sessionNotFound') },
      },
    },
    async (request, reply) => {
      const { id } = request.validatedData.params
      await sessions.revoke(request.user.id, id, userActor(request))
      if (id === sessionIdOf(request)) reply.clearAccessToken()
      return reply.code(204).send(null)
    },
  )
}

export default sessions
