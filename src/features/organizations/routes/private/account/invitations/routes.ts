import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { isApiKeyPrincipal } from '#core/auth/principal'
import { noStore } from '#feature/no-store'
import { ERRORS } from '#features/organizations/definitions'
import { serializeOwnInvitation } from '#features/organizations/invitations'
import { serializeOrganization } from '#features/organizations/organizations'
import { Organization, OwnInvitationList } from '#features/organizations/routes/schemas'
import { refuseImpersonation, userActor } from '#routes/request-context'
import { ErrorOf, PresentedToken, Strict } from '#routes/schemas'

const invitationRoutes: FastifyPluginAsyncTypebox = async app => {
  const { organizationInvitations: invitations } = app.services
  app.addHook('preSerialization', noStore)

  app.get(
    '',
    {
      config: { scope: 'organizations:read', everyOrganization: true },
      schema: {
        operationId: 'listOwnInvitations',
        summary: 'List the invitations that wait for your confirmed e-mail; the mail has the link to accept',
        response: { 200: OwnInvitationList },
      },
    },
    async ({ user }) => ({ results: (await invitations.listOwn(user.id)).map(serializeOwnInvitation) }),
  )

  app.post(
    '/accept',
    {
      config: { scope: 'organizations:write', everyOrganization: true },
      schema: {
        operationId: 'acceptInvitation',
        summary:
          'Accept an invitation to your e-mail with the token of its mail, which confirms the e-mail too',
        body: Strict({ token: PresentedToken }),
        response: { 200: Organization, 409: ErrorOf(ERRORS.noSeat) },
      },
    },
    async request => {
      refuseImpersonation(request)
      const { token } = request.validatedData.body
      const owner = request.requirePrincipal()
      const mayConfirm = !isApiKeyPrincipal(owner)
      return serializeOrganization(await invitations.accept(token, owner, mayConfirm, userActor(request)))
    },
  )
}

export default invitationRoutes
