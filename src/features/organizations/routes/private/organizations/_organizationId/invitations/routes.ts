import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ERRORS } from '#features/organizations/definitions'
import { serializeInvitation } from '#features/organizations/invitations'
import {
  Invitation,
  InvitationPage,
  InvitationParams,
  NewInvitation,
  OrganizationParams,
} from '#features/organizations/routes/schemas'
import { refuseImpersonation, userActor } from '#routes/request-context'
import { linkToNext } from '#routes/response-headers'
import { ErrorBody, ErrorOf, pageProperties, Strict } from '#routes/schemas'

const invitationRoutes: FastifyPluginAsyncTypebox = async app => {
  const { organizations, organizationInvitations } = app.services

  app.post(
    '',
    {
      config: { scope: 'organizations:write', organization: ['admin'], rateLimit: 'invitations' },
      schema: {
        operationId: 'createInvitation',
        summary: 'Mail an invitation, which works for seven days; it replaces another one of the same e-mail',
        params: OrganizationParams,
        body: NewInvitation(organizations.roles),
        response: {
          201: Invitation,
          404: ErrorOf(ERRORS.organizationNotFound),
          409: ErrorOf(ERRORS.alreadyMember),
          429: ErrorBody,
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      // The member who accepts it would stay when the impersonation has ended.
      refuseImpersonation(request)
      const { email, roles } = request.validatedData.body
      const owner = request.requirePrincipal()
      const actor = userActor(request)
      const { organization } = request
      const invitation = await organizationInvitations.create(organization, email, roles, owner, actor)
      reply.code(201).header('cache-control', 'no-store')
      return serializeInvitation(invitation)
    },
  )

  app.get(
    '',
    {
      config: { scope: 'organizations:read', organization: ['admin'] },
      schema: {
        operationId: 'listInvitations',
        summary: 'List the invitations of an organization that wait, newest first',
        params: OrganizationParams,
        querystring: Strict(pageProperties),
        response: { 200: InvitationPage, 404: ErrorOf(ERRORS.organizationNotFound), 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { limit, cursor } = request.validatedData.query
      const { id } = request.organization
      const { results, nextCursor } = await organizationInvitations.list(id, limit, cursor)
      linkToNext(request, reply.header('cache-control', 'no-store'), nextCursor)
      return { results: results.map(serializeInvitation), nextCursor }
    },
  )

  app.delete(
    '/:invitationId',
    {
      config: { scope: 'organizations:write', organization: ['admin'] },
      schema: {
        operationId: 'revokeInvitation',
        summary: 'Revoke an invitation',
        params: InvitationParams,
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.invitationNotFound), 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { invitationId } = request.validatedData.params
      const owner = request.requirePrincipal()
      await organizationInvitations.revoke(request.organization.id, invitationId, owner, userActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default invitationRoutes
