import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { noStore } from '#feature/no-store'
import { ERRORS } from '#features/organizations/definitions'
import { serializeMember } from '#features/organizations/members'
import { serializeOrganization } from '#features/organizations/organizations'
import { adminActor } from '#routes/request-context'
import { linkToNext } from '#routes/response-headers'
import { ErrorOf, pageProperties, Strict } from '#routes/schemas'
import {
  AdministeredOrganization,
  Member,
  MemberPage,
  MemberParams,
  MemberRoles,
  Organization,
  OrganizationPage,
  OrganizationParams,
} from '../../schemas.ts'

const start = (of: string) =>
  Type.Optional(
    Type.String({ normalize: 'trim', minLength: 1, maxLength: 100, description: `The start of the ${of}` }),
  )

const organizationRoutes: FastifyPluginAsyncTypebox = async app => {
  const { organizations, organizationMembers: members } = app.services
  app.addHook('preSerialization', noStore)

  app.get(
    '',
    {
      config: { scope: 'organizations:read' },
      schema: {
        operationId: 'listOrganizations',
        summary:
          'List organizations, oldest first; with `name` or `slug` those that begin with it, sorted by it',
        querystring: Strict({ ...pageProperties, name: start('name'), slug: start('slug') }),
        response: { 200: OrganizationPage },
      },
    },
    async (request, reply) => {
      const { limit, cursor, ...filter } = request.validatedData.query
      const { results, nextCursor } = await organizations.listAll(filter, limit, cursor)
      linkToNext(request, reply, nextCursor)
      return { results: results.map(serializeOrganization), nextCursor }
    },
  )

  app.get(
    '/:organizationId',
    {
      config: { scope: 'organizations:read' },
      schema: {
        operationId: 'getOrganization',
        summary: 'Get an organization',
        params: OrganizationParams,
        response: { 200: Organization, 404: ErrorOf(ERRORS.organizationNotFound) },
      },
    },
    async ({ validatedData: { params } }) =>
      serializeOrganization(await organizations.get(params.organizationId)),
  )

  app.put(
    '/:organizationId',
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
        },
      },
    },
    async request => {
      const { params, body } = request.validatedData
      const changed = await organizations.change(params.organizationId, body, null, adminActor(request))
      return serializeOrganization(changed)
    },
  )

  app.delete(
    '/:organizationId',
    {
      config: { scope: 'organizations:write' },
      schema: {
        operationId: 'deleteOrganization',
        summary: 'Delete an organization, with its memberships and invitations',
        params: OrganizationParams,
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.organizationNotFound) },
      },
    },
    async (request, reply) => {
      await organizations.remove(request.validatedData.params.organizationId, null, adminActor(request))
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/:organizationId/members',
    {
      config: { scope: 'organizations:read' },
      schema: {
        operationId: 'listMembersOfOrganization',
        summary: 'List the members of an organization in the order in which they joined',
        params: OrganizationParams,
        querystring: Strict(pageProperties),
        response: { 200: MemberPage, 404: ErrorOf(ERRORS.organizationNotFound) },
      },
    },
    async (request, reply) => {
      const { params, query } = request.validatedData
      const { id } = await organizations.get(params.organizationId)
      const { results, nextCursor } = await members.list(id, query.limit, query.cursor)
      linkToNext(request, reply, nextCursor)
      return { results: results.map(member => serializeMember(member, true)), nextCursor }
    },
  )

  app.put(
    '/:organizationId/members/:userId',
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
        },
      },
    },
    async (request, reply) => {
      const { organizationId, userId } = request.validatedData.params
      const { roles } = request.validatedData.body
      const { member, isNew } = await members.put(organizationId, userId, roles, adminActor(request))
      reply.code(isNew ? 201 : 200)
      return serializeMember(member, true)
    },
  )

  app.delete(
    '/:organizationId/members/:userId',
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
        },
      },
    },
    async (request, reply) => {
      const { organizationId, userId } = request.validatedData.params
      await members.remove(organizationId, userId, null, adminActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default organizationRoutes
