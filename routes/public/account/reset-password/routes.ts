import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { clientOf, disconnectSignal } from '#routes/request-context'
import { withHeaders } from '#routes/response-headers'
import {
  ErrorBody,
  ErrorOf,
  NewPassword,
  OptionalCode,
  PresentedToken,
  SignedIn,
  Strict,
} from '#routes/schemas'
import { sendSignedIn } from '#routes/signed-in'

const resetPassword: FastifyPluginAsyncTypebox = async app => {
  const { passwordResets } = app.services
  const Reset = Strict({
    token: PresentedToken,
    password: NewPassword(app.config.passwordMinLength),
    code: OptionalCode,
  })

  app.post(
    '',
    {
      schema: {
        operationId: 'resetPassword',
        summary: 'Reset the password with a mailed token; ends all earlier sessions',
        body: Reset,
        response: {
          200: withHeaders(SignedIn, 'Set-Cookie'),
          401: ErrorOf('secondFactorRequired'),
          429: ErrorBody,
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const { token, password, code } = request.validatedData.body
      const signal = disconnectSignal(reply)
      return sendSignedIn(await passwordResets.reset(token, password, code, clientOf(request), signal), reply)
    },
  )
}

export default resetPassword
