/** The page behind the link of an invitation. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ACCEPT, acceptPage, badInvitationPage, LIST } from '#features/organizations/pages'
import { FormText, linkedPage, pageForm } from '#routes/schemas'

const acceptPages: FastifyPluginAsyncTypebox = async app => {
  const { organizationInvitations } = app.services
  if (!app.config.hasPages) return
  app.servePages()

  app.get('', linkedPage({ token: FormText }), async (request, reply) => {
    const { token } = request.validatedData.query
    const invitation = await organizationInvitations.find(token)
    if (invitation === undefined) return reply.sendPage(badInvitationPage)
    const user = request.principal?.cachedUser.user
    if (user === undefined) reply.comeBackTo(`${ACCEPT}?token=${token}`)
    const mustConfirm = user !== undefined && user.email === invitation.email && !user.emailVerified
    return reply.sendPage(context => acceptPage(context, { ...invitation, token, mustConfirm }))
  })

  app.post('', pageForm({ token: FormText }), (request, reply) => {
    const { token } = request.validatedData.body
    const call = { method: 'POST', path: '/account/invitations/accept', body: { token } } as const
    return app.submitForm(request, reply, { call }, ({ body }) =>
      reply.redirectToPage(`${LIST}/${body.id}`, 'invitationAccepted'),
    )
  })
}

export default acceptPages
