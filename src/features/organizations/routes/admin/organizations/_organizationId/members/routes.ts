import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ERRORS } from '#features/organizations/definitions'
import { serializeMember } from '#features/organizations/members'
import {
  Member,
  MemberPage,
  MemberParams,
  MemberRoles,
  OrganizationParams,
} from '#features/organizations/routes/schemas'
import { adminActor } from '#routes/request-context'
import { linkToNext } from '#routes/response-headers'
import { ErrorBody, ErrorOf, pageProperties, Strict } from '#routes/schemas'

const memberRoutes: FastifyPluginAsyncTypebox = async app => {
  const { organizations, organizationMembers } = app.services

  app.get(
    '',
    {
      config: { scope: 'organizations:read' },
      schema: {
        operationId: 'listMembersOfOrganization',
        summary: 'List the members of an organization in the order in which they joined',
        params: OrganizationParams,
        querystring: Strict(pageProperties),
        response: { 200: MemberPage, 404: ErrorOf(ERRORS.organizationNotFound), 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { limit, cursor } = request.validatedData.query
      const { id } = await organizations.get(request.validatedData.params.organizationId)
      const { results, nextCursor } = await organizationMembers.list(id, limit, cursor)
      linkToNext(request, reply.header('cache-control', 'no-store'), nextCursor)
      return { results: results.map(member => serializeMember(member, true)), nextCursor }
    },
  )

  app.put(
    '/:userId',
    {
      config: { scope: 'organizations:write' },
      schema: {
        operationId: 'putMemberOfOrganization',
        summary: 'Add a user to an organization, or change the roles of a member',
        params: MemberParams,
        body: MemberRoles(organizations.roles),
        response: {
          200: Member,
          201: Member,
          404: ErrorOf(ERRORS.organizationNotFound),
          409: ErrorOf(ERRORS.noSeat),
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const { params, body } = request.validatedData
      const { organizationId, userId } = params
      const actor = adminActor(request)
      const { member, isNew } = await organizationMembers.put(organizationId, userId, body.roles, actor)
      reply.code(isNew ? 201 : 200).header('cache-control', 'no-store')
      return serializeMember(member, true)
    },
  )

  app.delete(
    '/:userId',
    {
      config: { scope: 'organizations:write' },
      schema: {
        operationId: 'removeMemberOfOrganization',
        summary: 'Remove a member from an organization',
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
      const { organizationId, userId } = request.validatedData.params
      await organizationMembers.remove(organizationId, userId, null, adminActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default memberRoutes
