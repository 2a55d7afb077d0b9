import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ERRORS } from '#features/organizations/definitions'
import { serializeOrganization, serializeOwnOrganization } from '#features/organizations/organizations'
import {
  ChangedOrganization,
  Organization,
  OrganizationParams,
  OwnOrganization,
} from '#features/organizations/routes/schemas'
import { userActor } from '#routes/request-context'
import { ErrorBody, ErrorOf } from '#routes/schemas'

const organizationRoutes: FastifyPluginAsyncTypebox = async app => {
  const { organizations } = app.services

  app.get(
    '',
    {
      config: { scope: 'organizations:read', organization: true },
      schema: {
        operationId: 'getOwnOrganization',
        summary: 'Get one of your organizations, with your roles there',
        params: OrganizationParams,
        response: { 200: OwnOrganization, 404: ErrorOf(ERRORS.organizationNotFound), 503: ErrorBody },
      },
    },
    async (request, reply) => {
      reply.header('cache-control', 'no-store')
      return serializeOwnOrganization(await organizations.getOwn(request.organization.id, request.user.id))
    },
  )

  app.put(
    '',
    {
      config: { scope: 'organizations:write', organization: ['owner'] },
      schema: {
        operationId: 'updateOwnOrganization',
        summary: 'Change the name or the slug of an organization that you own',
        params: OrganizationParams,
        body: ChangedOrganization,
        response: {
          200: Organization,
          404: ErrorOf(ERRORS.organizationNotFound),
          409: ErrorOf(ERRORS.slugTaken),
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const owner = request.requirePrincipal()
      const { id } = request.organization
      reply.header('cache-control', 'no-store')
      const { body } = request.validatedData
      return serializeOrganization(await organizations.change(id, body, owner, userActor(request)))
    },
  )

  app.delete(
    '',
    {
      // No API key: what it cannot restore, a leaked one must not delete.
      config: { organization: ['owner'], reauthenticate: true },
      schema: {
        operationId: 'deleteOwnOrganization',
        summary: 'Delete an organization that you own, with its memberships and invitations',
        params: OrganizationParams,
        response: {
          204: Type.Null(),
          404: ErrorOf(ERRORS.organizationNotFound),
          429: ErrorBody,
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      await organizations.remove(request.organization.id, request.requirePrincipal(), userActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default organizationRoutes
