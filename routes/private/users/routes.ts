import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { linkToNext } from '../../response-headers.ts'
import { listProperties, ProfilePage, Strict } from '../../schemas.ts'
import { serializeProfile } from '../../serializers.ts'

const users: FastifyPluginAsyncTypebox = async app => {
  app.get(
    '',
    {
      config: { scope: 'users:read', compress: true },
      schema: {
        operationId: 'listProfiles',
        summary: 'List profiles of users, page by page',
        querystring: Strict(listProperties),
        response: { 200: ProfilePage },
      },
    },
    async (request, reply) => {
      const { search, ...page } = request.validatedData.query
      const filter = { disabled: false, ...(search !== undefined && { search }) }
      const { users, nextCursor } = await app.services.users.list({ ...page, filter, isPublic: true })
      linkToNext(request, reply.header('cache-control', 'no-store'), nextCursor)
      return { results: users.map(serializeProfile), nextCursor }
    },
  )
}

export default users
