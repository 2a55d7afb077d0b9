import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { clientOf } from '#routes/request-context'
import { withHeaders } from '#routes/response-headers'
import { ErrorBody, ErrorOf, OptionalCode, PresentedToken, SignedIn, Strict } from '#routes/schemas'
import { sendSignedIn } from '#routes/signed-in'

const signInByMagicLink: FastifyPluginAsyncTypebox = async app => {
  const { magicLinks } = app.services
  if (magicLinks === null) return

  app.post(
    '',
    {
      config: { rateLimit: 'sign-in' },
      schema: {
        operationId: 'signInByMagicLink',
        summary: 'Sign in with the token of a mailed link',
        body: Strict({ token: PresentedToken, code: OptionalCode }),
        response: {
          200: withHeaders(SignedIn, 'Set-Cookie'),
          401: ErrorOf('secondFactorRequired'),
          403: ErrorBody,
          429: ErrorBody,
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const { token, code } = request.validatedData.body
      return sendSignedIn(await magicLinks.signIn(token, code, clientOf(request)), reply)
    },
  )
}

export default signInByMagicLink
