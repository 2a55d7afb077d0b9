import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { clientOf, disconnectSignal, refuseImpersonation, userActor } from '../../../request-context.ts'
import { withHeaders } from '../../../response-headers.ts'
import { ErrorBody, NewPassword, PresentedPassword, SignedIn, Strict, withExample } from '../../../schemas.ts'
import { sendSignedIn } from '../../../serializers.ts'

const password: FastifyPluginAsyncTypebox = async app => {
  const { passwordChanges } = app.services
  const PasswordChange = Strict({
    currentPassword: PresentedPassword,
    newPassword: withExample(NewPassword(app.config.passwordMinLength), 'six ducks left the pond'),
  })

  app.put(
    '',
    {
      config: { rateLimit: 'password', writeLimit: false },
      schema: {
        operationId: 'changePassword',
        summary: 'Change your password; ends all earlier sessions',
        body: PasswordChange,
        response: { 200: withHeaders(SignedIn, 'Set-Cookie'), 429: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      refuseImpersonation(request)
      const { body } = request.validatedData
      const result = await passwordChanges.change(
        request.requirePrincipal(),
        body,
        userActor(request),
        clientOf(request),
        disconnectSignal(reply),
      )
      return sendSignedIn(result, reply)
    },
  )
}

export default password
