import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { clientOf } from '../../../client-of.ts'
import { disconnectSignal } from '../../../disconnect-signal.ts'
import { presentSignedIn } from '../../../presenters.ts'
import { ErrorBody, NewPassword, PresentedPassword, SignedIn, Strict } from '../../../schemas.ts'

const password: FastifyPluginAsyncTypebox = async app => {
  const { passwordChanges } = app.services
  const PasswordChange = Strict({
    currentPassword: PresentedPassword,
    newPassword: NewPassword(app.config.passwordMinLength),
  })

  app.put(
    '',
    {
      schema: {
        summary: 'Choose another password; every other session ends',
        body: PasswordChange,
        response: { 200: SignedIn, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { user } = request.getIdentity().known
      const { body } = request.validatedData
      const signedIn = await passwordChanges.change(user, body, clientOf(request), disconnectSignal(reply))
      return presentSignedIn(signedIn, reply)
    },
  )
}

export default password
