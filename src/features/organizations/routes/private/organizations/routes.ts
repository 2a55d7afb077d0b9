import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ERRORS } from '#features/organizations/definitions'
import { serializeOrganization, serializeOwnOrganization } from '#features/organizations/organizations'
import { userActor } from '#routes/request-context'
import { linkToNext } from '#routes/response-headers'
import { ErrorBody, ErrorOf, pageProperties, Strict } from '#routes/schemas'
import { NewOrganization, Organization, OwnOrganizationPage } from '../../schemas.ts'

const organizationRoutes: FastifyPluginAsyncTypebox = async app => {
  const { organizations } = app.services

  app.post(
    '',
    {
      config: { scope: 'organizations:write' },
      schema: {
        operationId: 'createOrganization',
        summary:
          'Create an organization, of which you are the owner; without a slug it gets one from its name',
        body: NewOrganization,
        response: { 201: Organization, 409: ErrorOf(ERRORS.slugTaken), 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const owner = request.requirePrincipal()
      const { body } = request.validatedData
      const created = await organizations.create(request.user, body, owner, userActor(request))
      reply.code(201).header('cache-control', 'no-store')
      return serializeOrganization(created)
    },
  )

  app.get(
    '',
    {
      config: { scope: 'organizations:read' },
      schema: {
        operationId: 'listOwnOrganizations',
        summary: 'List your organizations, with your roles there, in the order in which you joined them',
        querystring: Strict(pageProperties),
        response: { 200: OwnOrganizationPage, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { limit, cursor } = request.validatedData.query
      const { results, nextCursor } = await organizations.list(request.user.id, limit, cursor)
      linkToNext(request, reply.header('cache-control', 'no-store'), nextCursor)
      return { results: results.map(serializeOwnOrganization), nextCursor }
    },
  )
}

export default organizationRoutes
