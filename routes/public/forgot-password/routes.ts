/** The page for users who have forgotten their password. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { forgotPasswordPage, forgotPasswordSentPage } from '#http/pages/signed-out'
import { FormText, linkedPage, Strict } from '../../schemas.ts'

const forgotPassword: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages) return
  app.servePages()

  app.get('', linkedPage({}), (_request, reply) => reply.sendPage(context => forgotPasswordPage(context)))

  app.post('', { schema: { hide: true, body: Strict({ email: FormText }) } }, async (request, reply) => {
    const { body } = request.validatedData
    const response = await app.callApi(request, { method: 'POST', path: '/account/forgot-password', body })
    return reply
      .relay(response)
      .sendPage(context =>
        response.status < 400
          ? forgotPasswordSentPage(context)
          : forgotPasswordPage(context, { email: body.email, errors: response.errors }),
      )
  })
}

export default forgotPassword
