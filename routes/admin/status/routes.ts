import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { missingScopes } from '#core/auth/admin-key'
import { adminKeyOf } from '../../request-context.ts'
import { Count, Status, Strict } from '../../schemas.ts'
import { serializeStatus } from '../../serializers.ts'

const StatusQuery = Strict({
  count: Type.Optional(
    Count(
      'Count the users (the default, which takes longer the more there are), estimate how many there are, or neither',
    ),
  ),
})

const statusRoutes: FastifyPluginAsyncTypebox = async app => {
  const { status } = app.services

  app.get(
    '',
    {
      config: { scope: 'status:read' },
      schema: {
        operationId: 'getStatus',
        querystring: StatusQuery,
        summary: 'The version, the settings that matter for measurements, and the number of users',
        response: { 200: Status },
      },
    },
    async (request, reply) => {
      const { count = true } = request.validatedData.query
      const mayCount = missingScopes(adminKeyOf(request), ['users:read']).length === 0
      const report = await status.read(mayCount && count)
      reply.header('cache-control', 'no-store')
      return serializeStatus(report)
    },
  )
}

export default statusRoutes
