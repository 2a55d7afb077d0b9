/** The pages to sign in with a mailed code. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { emailCodePage, requestEmailCodePage } from '#features/email-codes/pages'
import { FormText, Strict } from '#routes/schemas'

const emailCode: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages || app.services.emailCodes === null) return
  app.servePages()

  app.get('', { schema: { hide: true } }, (_request, reply) =>
    reply.sendPage(context => requestEmailCodePage(context)),
  )

  app.post('', { schema: { hide: true, body: Strict({ email: FormText }) } }, async (request, reply) => {
    const { body } = request.validatedData
    const response = await app.callApi(request, { method: 'POST', path: '/account/email-code', body })
    const { email } = body
    return reply
      .relay(response)
      .sendPage(context =>
        response.status < 400
          ? emailCodePage(context, { email })
          : requestEmailCodePage(context, { email, errors: response.errors }),
      )
  })

  const SignIn = Strict({ email: FormText, emailCode: FormText, code: Type.Optional(FormText) })

  app.post('/confirm', { schema: { hide: true, body: SignIn } }, async (request, reply) => {
    const { email, emailCode, code } = request.validatedData.body
    const body = { email, emailCode, ...(code && { code }) }
    const response = await app.callApi(request, {
      method: 'POST',
      path: '/account/sign-in/email-code',
      body,
    })
    reply.relay(response)
    if (response.status === 200) return reply.redirectSignedIn()
    const { errors } = response
    const wantsCode = code !== undefined || 'code' in errors
    return reply.sendPage(context => emailCodePage(context, { email, wantsCode, errors }))
  })
}

export default emailCode
