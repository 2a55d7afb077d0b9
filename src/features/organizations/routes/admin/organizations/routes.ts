import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { serializeOrganization } from '#features/organizations/organizations'
import { linkToNext } from '#routes/response-headers'
import { ErrorBody, pageProperties, Strict } from '#routes/schemas'
import { OrganizationPage } from '../../schemas.ts'

const start = (of: string) =>
  Type.Optional(
    Type.String({ normalize: 'trim', minLength: 1, maxLength: 100, description: `The start of the ${of}` }),
  )

const organizationRoutes: FastifyPluginAsyncTypebox = async app => {
  const { organizations } = app.services

  app.get(
    '',
    {
      config: { scope: 'organizations:read' },
      schema: {
        operationId: 'listOrganizations',
        summary:
          'List organizations, oldest first; with `name` or `slug` those that begin with it, sorted by it',
        querystring: Strict({ ...pageProperties, name: start('name'), slug: start('slug') }),
        response: { 200: OrganizationPage, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { limit, cursor, ...filter } = request.validatedData.query
      const { results, nextCursor } = await organizations.listAll(filter, limit, cursor)
      linkToNext(request, reply.header('cache-control', 'no-store'), nextCursor)
      return { results: results.map(serializeOrganization), nextCursor }
    },
  )
}

export default organizationRoutes
