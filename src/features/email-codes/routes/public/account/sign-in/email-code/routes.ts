import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ERRORS } from '#features/email-codes/email-codes'
import { clientOf } from '#routes/request-context'
import { withHeaders } from '#routes/response-headers'
import { ErrorBody, ErrorOf, KnownEmail, OptionalCode, SignedIn, Strict } from '#routes/schemas'
import { sendSignedIn } from '#routes/signed-in'

/** Any text: a code of another form is wrong, not invalid. */
const PresentedEmailCode = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'The eight digits of the newest mail',
  examples: ['12345678'],
})

const signInByEmailCode: FastifyPluginAsyncTypebox = async app => {
  const { emailCodes } = app.services
  if (emailCodes === null) return

  app.post(
    '',
    {
      config: { rateLimit: 'sign-in' },
      schema: {
        operationId: 'signInByEmailCode',
        summary: 'Sign in with a mailed code',
        body: Strict({
          email: KnownEmail,
          emailCode: PresentedEmailCode,
          code: OptionalCode,
        }),
        response: {
          200: withHeaders(SignedIn, 'Set-Cookie'),
          401: ErrorOf(ERRORS.wrongEmailCode),
          403: ErrorBody,
          503: ErrorBody,
        },
      },
    },
    async (request, reply) =>
      sendSignedIn(await emailCodes.signIn(request.validatedData.body, clientOf(request)), reply),
  )
}

export default signInByEmailCode
