import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { missingScopes } from '../../../src/auth/admin-key.ts'
import { adminKeyOf } from '../../request-context.ts'
import { ErrorBody, Status } from '../../schemas.ts'
import { serializeStatus } from '../../serializers.ts'

const statusRoutes: FastifyPluginAsyncTypebox = async app => {
  const { status } = app.services

  app.get(
    '',
    {
      config: { scope: 'status:read' },
      schema: {
        operationId: 'getStatus',
        summary: 'The version, the settings that matter for measurements, and the number of users',
        response: { 200: Status, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const countsUsers = missingScopes(adminKeyOf(request), ['users:read']).length === 0
      const report = await status.read(countsUsers)
      reply.header('cache-control', 'no-store')
      return serializeStatus(report)
    },
  )
}

export default statusRoutes
