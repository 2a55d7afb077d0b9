import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ERRORS } from '#features/organizations/definitions'
import { serializeOrganization } from '#features/organizations/organizations'
import {
  AdministeredOrganization,
  Organization,
  OrganizationParams,
} from '#features/organizations/routes/schemas'
import { adminActor } from '#routes/request-context'
import { ErrorBody, ErrorOf } from '#routes/schemas'

const organizationRoutes: FastifyPluginAsyncTypebox = async app => {
  const { organizations } = app.services

  app.get(
    '',
    {
      config: { scope: 'organizations:read' },
      schema: {
        operationId: 'getOrganization',
        summary: 'Get an organization',
        params: OrganizationParams,
        response: { 200: Organization, 404: ErrorOf(ERRORS.organizationNotFound), 503: ErrorBody },
      },
    },
    async (request, reply) => {
      reply.header('cache-control', 'no-store')
      return serializeOrganization(await organizations.get(request.validatedData.params.organizationId))
    },
  )

  app.put(
    '',
    {
      config: { scope: 'organizations:write' },
      schema: {
        operationId: 'updateOrganization',
        summary: 'Change an organization, also the number of its seats',
        params: OrganizationParams,
        body: AdministeredOrganization,
        response: {
          200: Organization,
          404: ErrorOf(ERRORS.organizationNotFound),
          409: ErrorOf(ERRORS.slugTaken),
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const { params, body } = request.validatedData
      reply.header('cache-control', 'no-store')
      const changed = await organizations.change(params.organizationId, body, null, adminActor(request))
      return serializeOrganization(changed)
    },
  )

  app.delete(
    '',
    {
      config: { scope: 'organizations:write' },
      schema: {
        operationId: 'deleteOrganization',
        summary: 'Delete an organization, with its memberships and invitations',
        params: OrganizationParams,
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.organizationNotFound), 503: ErrorBody },
      },
    },
    async (request, reply) => {
      await organizations.remove(request.validatedData.params.organizationId, null, adminActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default organizationRoutes
