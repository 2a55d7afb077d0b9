import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { serializeOwnOrganization } from '#features/organizations/organizations'
import { OwnOrganizationPage } from '#features/organizations/routes/schemas'
import { linkToNext } from '#routes/response-headers'
import { ErrorOf, IdParams, pageProperties, Strict } from '#routes/schemas'

const organizationRoutes: FastifyPluginAsyncTypebox = async app => {
  const { organizations } = app.services

  app.get(
    '',
    {
      config: { scope: 'organizations:read' },
      schema: {
        operationId: 'listOrganizationsOfUser',
        summary:
          'List the organizations of a user, with the roles there, in the order in which the user joined them',
        params: IdParams,
        querystring: Strict(pageProperties),
        response: { 200: OwnOrganizationPage, 404: ErrorOf('userNotFound') },
      },
    },
    async (request, reply) => {
      const { params, query } = request.validatedData
      const { results, nextCursor } = await organizations.listOf(params.id, query.limit, query.cursor)
      linkToNext(request, reply.header('cache-control', 'no-store'), nextCursor)
      return { results: results.map(serializeOwnOrganization), nextCursor }
    },
  )
}

export default organizationRoutes
