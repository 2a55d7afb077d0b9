import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ERRORS } from '#features/organizations/definitions'
import { serializeMember } from '#features/organizations/members'
import { mayManageMembers } from '#features/organizations/organization'
import {
  Member,
  MemberPage,
  MemberParams,
  MemberRoles,
  OrganizationParams,
} from '#features/organizations/routes/schemas'
import { refuseImpersonation, userActor } from '#routes/request-context'
import { linkToNext } from '#routes/response-headers'
import { ErrorBody, ErrorOf, pageProperties, Strict } from '#routes/schemas'

const memberRoutes: FastifyPluginAsyncTypebox = async app => {
  const { organizations, organizationMembers } = app.services

  app.get(
    '',
    {
      config: { scope: 'organizations:read', organization: true },
      schema: {
        operationId: 'listMembers',
        summary:
          'List the members of an organization in the order in which they joined; e-mails for owners and admins only',
        params: OrganizationParams,
        querystring: Strict(pageProperties),
        response: { 200: MemberPage, 404: ErrorOf(ERRORS.organizationNotFound), 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { id, roles } = request.organization
      const { limit, cursor } = request.validatedData.query
      const { results, nextCursor } = await organizationMembers.list(id, limit, cursor)
      linkToNext(request, reply.header('cache-control', 'no-store'), nextCursor)
      const withEmail = mayManageMembers(roles)
      return { results: results.map(member => serializeMember(member, withEmail)), nextCursor }
    },
  )

  app.put(
    '/:userId',
    {
      config: { scope: 'organizations:write', organization: ['admin'] },
      schema: {
        operationId: 'updateMember',
        summary: 'Change the roles of a member; admins cannot give or take the roles owner and admin',
        params: MemberParams,
        body: MemberRoles(organizations.roles),
        response: {
          200: Member,
          404: ErrorOf(ERRORS.memberNotFound),
          409: ErrorOf(ERRORS.lastOwner),
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      refuseImpersonation(request)
      const { params, body } = request.validatedData
      const owner = request.requirePrincipal()
      const { id } = request.organization
      const actor = userActor(request)
      reply.header('cache-control', 'no-store')
      return serializeMember(
        await organizationMembers.setRoles(id, params.userId, body.roles, owner, actor),
        true,
      )
    },
  )

  app.delete(
    '/:userId',
    {
      config: { scope: 'organizations:write', organization: true },
      schema: {
        operationId: 'removeMember',
        summary: 'Remove a member as owner or admin, or leave: with your own id',
        params: MemberParams,
        response: {
          204: Type.Null(),
          404: ErrorOf(ERRORS.memberNotFound),
          409: ErrorOf(ERRORS.lastOwner),
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const owner = request.requirePrincipal()
      const { userId } = request.validatedData.params
      await organizationMembers.remove(request.organization.id, userId, owner, userActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default memberRoutes
