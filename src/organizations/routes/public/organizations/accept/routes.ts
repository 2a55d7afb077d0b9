/** The page behind the link of an invitation. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { FormText, pageForm } from '../../../../../../routes/schemas.ts'
import { acceptPage, badInvitationPage, LIST } from '../../../../pages.ts'

const acceptPages: FastifyPluginAsyncTypebox = async app => {
  const { organizationInvitations } = app.services
  if (!app.config.hasPages) return
  app.servePages()

  const Query = Type.Object({ token: Type.Optional(FormText) })

  app.get('', { schema: { hide: true, querystring: Query } }, async (request, reply) => {
    const { token = '' } = request.validatedData.query
    const invitation = await organizationInvitations.find(token)
    return reply.sendPage(context =>
      invitation === undefined ? badInvitationPage(context) : acceptPage(context, { ...invitation, token }),
    )
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
