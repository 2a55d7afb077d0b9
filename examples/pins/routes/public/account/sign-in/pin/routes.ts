/** Sign-in with a PIN. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { ServicesOf } from '#feature/declaration'
import { clientOf } from '#routes/request-context'
import { withHeaders } from '#routes/response-headers'
import { ErrorBody, ErrorOf, KnownEmail, OptionalCode, SignedIn, Strict } from '#routes/schemas'
import { sendSignedIn } from '#routes/signed-in'
import { ERRORS, type pins as feature } from '../../../../../pins.ts'

const SignIn = Strict({
  email: KnownEmail,
  pin: Type.String({ maxLength: 64, examples: ['4711'] }),
  code: OptionalCode,
})

const routes: FastifyPluginAsyncTypebox = async app => {
  const { pins } = app.services as typeof app.services & ServicesOf<[typeof feature]>

  app.post(
    '',
    {
      config: { rateLimit: 'sign-in' },
      schema: {
        operationId: 'signInWithPin',
        summary: 'Sign in with a PIN',
        body: SignIn,
        response: {
          200: withHeaders(SignedIn, 'Set-Cookie'),
          401: ErrorOf(ERRORS.wrongPin),
          403: ErrorBody,
          503: ErrorBody,
        },
      },
    },
    async (request, reply) =>
      sendSignedIn(await pins.signIn(request.validatedData.body, clientOf(request)), reply),
  )
}

export default routes
