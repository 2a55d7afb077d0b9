import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { clientOf, disconnectSignal, refuseImpersonation, userActor } from '#routes/request-context'
import { withHeaders } from '#routes/response-headers'
import {
  EndOthers,
  ErrorOf,
  NewPassword,
  OptionalCode,
  PresentedPassword,
  SignedIn,
  Strict,
  withExample,
} from '#routes/schemas'
import { sendSignedIn } from '#routes/signed-in'

const password: FastifyPluginAsyncTypebox = async app => {
  const { passwordChanges } = app.services
  const PasswordChange = Strict({
    currentPassword: Type.Optional(PresentedPassword),
    code: OptionalCode,
    newPassword: withExample(NewPassword(app.config.passwordMinLength), 'six ducks left the pond'),
  })

  app.put(
    '',
    {
      config: { rateLimit: 'password', writeLimit: false },
      schema: {
        operationId: 'changePassword',
        summary: 'Change your password, or set the first one; ends all earlier sessions',
        body: PasswordChange,
        response: { 200: withHeaders(SignedIn, 'Set-Cookie') },
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

  app.delete(
    '',
    {
      config: { reauthenticate: true, writeLimit: false },
      schema: {
        operationId: 'removePassword',
        summary: 'Remove your password, if you have another way to sign in',
        querystring: EndOthers,
        response: { 204: Type.Null(), 404: ErrorOf('passwordNotFound'), 409: ErrorOf('lastSignInMethod') },
      },
    },
    async (request, reply) => {
      const { endOthers: endsOthers } = request.validatedData.query
      await passwordChanges.remove(request.requirePrincipal(), { endsOthers, actor: userActor(request) })
      return reply.code(204).send(null)
    },
  )
}

export default password
