import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { noStore } from '#feature/no-store'
import { ERRORS } from '#features/organizations/definitions'
import { serializeInvitation } from '#features/organizations/invitations'
import { serializeMember } from '#features/organizations/members'
import { mayManageMembers } from '#features/organizations/organization'
import { serializeOrganization, serializeOwnOrganization } from '#features/organizations/organizations'
import { refuseImpersonation, userActor } from '#routes/request-context'
import { linkToNext } from '#routes/response-headers'
import { ErrorOf, pageProperties, Strict } from '#routes/schemas'
import {
  ChangedOrganization,
  Invitation,
  InvitationPage,
  InvitationParams,
  Member,
  MemberPage,
  MemberParams,
  MemberRoles,
  NewInvitation,
  NewOrganization,
  Organization,
  OrganizationParams,
  OwnOrganization,
  OwnOrganizationPage,
} from '../../schemas.ts'

const organizationRoutes: FastifyPluginAsyncTypebox = async app => {
  const { organizations, organizationMembers: members, organizationInvitations: invitations } = app.services
  const { returnTargets } = app.services
  app.addHook('preSerialization', noStore)

  app.post(
    '',
    {
      config: { scope: 'organizations:write', everyOrganization: true },
      schema: {
        operationId: 'createOrganization',
        summary:
          'Create an organization, of which you are the owner; without a slug it gets one from its name',
        body: NewOrganization,
        response: { 201: Organization, 409: ErrorOf(ERRORS.slugTaken) },
      },
    },
    async (request, reply) => {
      const owner = request.requirePrincipal()
      const { body } = request.validatedData
      reply.code(201)
      return serializeOrganization(await organizations.create(request.user, body, owner, userActor(request)))
    },
  )

  app.get(
    '',
    {
      config: { scope: 'organizations:read', everyOrganization: true },
      schema: {
        operationId: 'listOwnOrganizations',
        summary: 'List your organizations, with your roles there, in the order in which you joined them',
        querystring: Strict(pageProperties),
        response: { 200: OwnOrganizationPage },
      },
    },
    async (request, reply) => {
      const { limit, cursor } = request.validatedData.query
      const { results, nextCursor } = await organizations.list(request.user.id, limit, cursor)
      linkToNext(request, reply, nextCursor)
      return { results: results.map(serializeOwnOrganization), nextCursor }
    },
  )

  app.get(
    '/:organizationId',
    {
      config: { scope: 'organizations:read', organization: true },
      schema: {
        operationId: 'getOwnOrganization',
        summary: 'Get one of your organizations, with your roles there',
        params: OrganizationParams,
        response: { 200: OwnOrganization, 404: ErrorOf(ERRORS.organizationNotFound) },
      },
    },
    async ({ organization, user }) =>
      serializeOwnOrganization(await organizations.getOwn(organization.id, user.id)),
  )

  app.put(
    '/:organizationId',
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
        },
      },
    },
    async request => {
      const owner = request.requirePrincipal()
      const { id } = request.organization
      const { body } = request.validatedData
      return serializeOrganization(await organizations.change(id, body, owner, userActor(request)))
    },
  )

  app.delete(
    '/:organizationId',
    {
      // No API key: what it cannot restore, a leaked one must not delete.
      config: { organization: ['owner'], reauthenticate: true },
      schema: {
        operationId: 'deleteOwnOrganization',
        summary: 'Delete an organization that you own, with its memberships and invitations',
        params: OrganizationParams,
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.organizationNotFound) },
      },
    },
    async (request, reply) => {
      await organizations.remove(request.organization.id, request.requirePrincipal(), userActor(request))
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/:organizationId/members',
    {
      config: { scope: 'organizations:read', organization: true },
      schema: {
        operationId: 'listMembers',
        summary:
          'List the members of an organization in the order in which they joined; e-mails for owners and admins only',
        params: OrganizationParams,
        querystring: Strict(pageProperties),
        response: { 200: MemberPage, 404: ErrorOf(ERRORS.organizationNotFound) },
      },
    },
    async (request, reply) => {
      const { id, roles } = request.organization
      const { limit, cursor } = request.validatedData.query
      const { results, nextCursor } = await members.list(id, limit, cursor)
      linkToNext(request, reply, nextCursor)
      const withEmail = mayManageMembers(roles)
      return { results: results.map(member => serializeMember(member, withEmail)), nextCursor }
    },
  )

  app.put(
    '/:organizationId/members/:userId',
    {
      config: { scope: 'organizations:write', organization: ['admin'] },
      schema: {
        operationId: 'updateMember',
        summary: 'Change the roles of a member; admins cannot give or take the roles owner and admin',
        params: MemberParams,
        body: MemberRoles(organizations.roles),
        response: { 200: Member, 404: ErrorOf(ERRORS.memberNotFound), 409: ErrorOf(ERRORS.lastOwner) },
      },
    },
    async request => {
      refuseImpersonation(request)
      const { params, body } = request.validatedData
      const owner = request.requirePrincipal()
      const { id } = request.organization
      const changed = await members.setRoles(id, params.userId, body.roles, owner, userActor(request))
      return serializeMember(changed, true)
    },
  )

  app.delete(
    '/:organizationId/members/:userId',
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
        },
      },
    },
    async (request, reply) => {
      const owner = request.requirePrincipal()
      const { userId } = request.validatedData.params
      await members.remove(request.organization.id, userId, owner, userActor(request))
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/:organizationId/invitations',
    {
      config: { scope: 'organizations:write', organization: ['admin'], rateLimit: 'invitations' },
      schema: {
        operationId: 'createInvitation',
        summary: 'Mail an invitation, which works for seven days; it replaces another one of the same e-mail',
        params: OrganizationParams,
        body: NewInvitation(organizations.roles, returnTargets),
        response: {
          201: Invitation,
          404: ErrorOf(ERRORS.organizationNotFound),
          409: ErrorOf(ERRORS.alreadyMember),
        },
      },
    },
    async (request, reply) => {
      // The member who accepts it would stay when the impersonation has ended.
      refuseImpersonation(request)
      const { email, roles, returnTo } = request.validatedData.body
      const target = returnTargets.parse(returnTo)
      const owner = request.requirePrincipal()
      const actor = userActor(request)
      reply.code(201)
      return serializeInvitation(
        await invitations.create(request.organization, email, roles, owner, actor, target),
      )
    },
  )

  app.get(
    '/:organizationId/invitations',
    {
      config: { scope: 'organizations:read', organization: ['admin'] },
      schema: {
        operationId: 'listInvitations',
        summary: 'List the invitations of an organization that wait, newest first',
        params: OrganizationParams,
        querystring: Strict(pageProperties),
        response: { 200: InvitationPage, 404: ErrorOf(ERRORS.organizationNotFound) },
      },
    },
    async (request, reply) => {
      const { limit, cursor } = request.validatedData.query
      const { results, nextCursor } = await invitations.list(request.organization.id, limit, cursor)
      linkToNext(request, reply, nextCursor)
      return { results: results.map(serializeInvitation), nextCursor }
    },
  )

  app.delete(
    '/:organizationId/invitations/:invitationId',
    {
      config: { scope: 'organizations:write', organization: ['admin'] },
      schema: {
        operationId: 'revokeInvitation',
        summary: 'Revoke an invitation',
        params: InvitationParams,
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.invitationNotFound) },
      },
    },
    async (request, reply) => {
      const { invitationId } = request.validatedData.params
      const owner = request.requirePrincipal()
      await invitations.revoke(request.organization.id, invitationId, owner, userActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default organizationRoutes
