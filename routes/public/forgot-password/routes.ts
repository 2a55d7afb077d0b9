/** The page for users who have forgotten their password. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { forgotPasswordPage, forgotPasswordSentPage } from '#http/pages/signed-out'
import { returnToOf } from '../../request-context.ts'
import { FormText, linkedPage, PageParameter, pageForm, prefilledEmail } from '../../schemas.ts'

const forgotPassword: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages) return
  app.servePages()

  app.get('', linkedPage({ email: PageParameter }), (request, reply) => {
    const email = prefilledEmail(request.validatedData.query)
    return reply.sendPage(context => forgotPasswordPage(context, { email }))
  })

  app.post('', pageForm({ email: FormText }), async (request, reply) => {
    const { email } = request.validatedData.body
    const body = { email, ...returnToOf(request) }
    const response = await app.callApi(request, { method: 'POST', path: '/account/forgot-password', body })
    return reply
      .relay(response)
      .sendPage(context =>
        response.status < 400
          ? forgotPasswordSentPage(context)
          : forgotPasswordPage(context, { email, errors: response.errors }),
      )
  })
}

export default forgotPassword
