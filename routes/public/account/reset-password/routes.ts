import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { clientOf, disconnectSignal } from '../../../request-context.ts'
import { withHeaders } from '../../../response-headers.ts'
import {
  ErrorBody,
  ErrorOf,
  NewPassword,
  OptionalCode,
  PresentedToken,
  SignedIn,
  Strict,
} from '../../../schemas.ts'
import { sendSignedIn } from '../../../serializers.ts'

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
