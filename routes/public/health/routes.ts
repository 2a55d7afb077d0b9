import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { sendJson } from '../../serializers.ts'

const Health = Type.Object({ status: Type.Literal('ok') }, { title: 'Health' })

const health: FastifyPluginAsyncTypebox = async app => {
  app.get(
    '',
    {
      schema: {
        summary: 'Whether the process responds; does not use the database',
        tags: ['service'],
        response: { 200: Health },
      },
    },
    (_request, reply) => {
      sendJson(reply, '{"status":"ok"}')
    },
  )
}

export default health
