/** The page behind the link of an invitation. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ACCEPT, acceptPage, badInvitationPage, LIST } from '#features/organizations/pages'
import { returnToPage } from '#http/pages/return-links'
import { FormText, linkedPage, pageForm } from '#routes/schemas'

const acceptPages: FastifyPluginAsyncTypebox = async app => {
  const { organizationInvitations } = app.services
  if (!app.config.hasPages) return
  app.servePages()

  app.get('', linkedPage({ token: FormText }), async (request, reply) => {
    const { token } = request.validatedData.query
    const invitation = await organizationInvitations.find(token)
    if (invitation === undefined) return reply.sendPage(badInvitationPage)
    const back = returnToPage(`${ACCEPT}?token=${encodeURIComponent(token)}`, app.config.publicUrl)
    return reply.sendPage(context => acceptPage(context, { ...invitation, token, back }))
  })

  app.post('', pageForm({ token: FormText }), async (request, reply) => {
    const { token } = request.validatedData.body
    await app.loadReturnTo(request, token)
    const call = { method: 'POST', path: '/account/invitations/accept', body: { token } } as const
    return app.submitForm(request, reply, { call }, ({ body }) =>
      request.returnTo === null
        ? reply.redirectToPage(`${LIST}/${body.id}`, 'invitationAccepted')
        : reply.redirectSignedIn(),
    )
  })
}

export default acceptPages
