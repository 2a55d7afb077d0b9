/** The page behind the link in a mail that resets the password. Opening it changes nothing. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { errorBody, ServiceError } from '#base/errors'
import { deadResetPage, resetPasswordPage } from '#http/pages/signed-out'
import { FormText, linkedPage, pageForm } from '../../schemas.ts'

const resetPassword: FastifyPluginAsyncTypebox = async app => {
  const { hasPages, passwordMinLength: minLength } = app.config
  const { passwordResets } = app.services
  if (!hasPages) return
  app.servePages()

  app.get('', linkedPage({ token: FormText }), async (request, reply) => {
    const { token } = request.validatedData.query
    await app.loadReturnTo(request, token)
    try {
      const wantsCode = await passwordResets.check(token)
      return reply.sendPage(context => resetPasswordPage(context, { token, minLength, wantsCode }))
    } catch (error) {
      if (!(error instanceof ServiceError) || error.field !== 'token') throw error
      const { status, headers, field, message } = error
      const { errors } = errorBody(field, message)
      return reply.relay({ status, headers, errors }).sendPage(deadResetPage)
    }
  })

  const Reset = { token: FormText, password: FormText, code: Type.Optional(FormText) }

  app.post('', pageForm(Reset), async (request, reply) => {
    const { token, password, code } = request.validatedData.body
    await app.loadReturnTo(request, token)
    const body = { token, password, ...(code && { code }) }
    const response = await app.callApi(request, { method: 'POST', path: '/account/reset-password', body })
    reply.relay(response)
    if (response.status === 200) return reply.redirectSignedIn('password')
    const { errors } = response
    // The user may have no code any more: the field stays once it was asked for.
    const wantsCode = code !== undefined || 'code' in errors
    return reply.sendPage(context =>
      'token' in errors
        ? deadResetPage(context)
        : resetPasswordPage(context, { token, minLength, wantsCode, errors }),
    )
  })
}

export default resetPassword
