import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { MethodList } from '#routes/schemas'
import { serializeMethod } from '#routes/serializers'

const methods: FastifyPluginAsyncTypebox = async app => {
  const { accountMethods } = app.services

  app.get(
    '',
    {
      schema: {
        operationId: 'listMethods',
        summary: 'List your ways to sign in and your factors',
        response: { 200: MethodList },
      },
    },
    async (request, reply) => {
      const found = await accountMethods.list(request.user)
      reply.header('cache-control', 'no-store')
      return { results: found.map(serializeMethod) }
    },
  )
}

export default methods
