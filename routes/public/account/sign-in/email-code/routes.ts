import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { clientOf } from '../../../../request-context.ts'
import { withHeaders } from '../../../../response-headers.ts'
import {
  ErrorBody,
  KnownEmail,
  OptionalCode,
  PresentedEmailCode,
  SignedIn,
  Strict,
} from '../../../../schemas.ts'
import { sendSignedIn } from '../../../../serializers.ts'

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
          401: ErrorBody,
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
