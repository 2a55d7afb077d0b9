import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ServiceError } from '#base/errors'
import { ErrorBody } from '../../schemas.ts'
import { sendJson } from '../../serializers.ts'

const Ready = Type.Object({ status: Type.Literal('ready') }, { title: 'Readiness' })

const ready: FastifyPluginAsyncTypebox = async app => {
  app.get(
    '',
    {
      schema: {
        operationId: 'getReadiness',
        summary: 'Whether this instance accepts requests',
        tags: ['service'],
        response: { 200: Ready, 503: ErrorBody },
      },
    },
    async (_request, reply) => {
      if (app.isDraining()) throw new ServiceError('draining')
      await app.services.storage.ping()
      return sendJson(reply, '{"status":"ready"}')
    },
  )
}

export default ready
