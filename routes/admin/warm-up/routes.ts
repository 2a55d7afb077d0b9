import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ErrorBody, WarmUp, WarmUpRequest } from '../../schemas.ts'

const warmUpRoutes: FastifyPluginAsyncTypebox = async app => {
  const { warmUp } = app.services

  app.post(
    '',
    {
      config: { scope: 'cache:write' },
      schema: {
        operationId: 'warmUpCache',
        summary: 'Cache the tokens of the sessions that were opened last, in the responding process',
        body: WarmUpRequest,
        response: { 200: WarmUp, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const result = await warmUp.run(request.validatedData.body?.limit)
      reply.header('cache-control', 'no-store')
      return result
    },
  )
}

export default warmUpRoutes
