import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { PresentedCredential } from '#features/passkeys/credential-schemas'
import { ERRORS } from '#features/passkeys/definitions'
import { PasskeyRequestOptions } from '#features/passkeys/routes/schemas'
import { clientOf } from '#routes/request-context'
import { withHeaders } from '#routes/response-headers'
import { ErrorBody, ErrorOf, SignedIn, Strict } from '#routes/schemas'
import { sendSignedIn } from '#routes/signed-in'

const signInWithPasskey: FastifyPluginAsyncTypebox = async app => {
  const { passkeySignIns } = app.services

  app.post(
    '/options',
    {
      config: { rateLimit: 'sign-in' },
      schema: {
        operationId: 'createPasskeySignInOptions',
        summary: 'Begin to sign in with a passkey: get options for navigator.credentials.get',
        response: {
          200: PasskeyRequestOptions,
          403: ErrorOf(ERRORS.passkeysUnavailable),
          503: ErrorBody,
        },
      },
    },
    async (_request, reply) => {
      reply.header('cache-control', 'no-store')
      return passkeySignIns.requestOptions()
    },
  )

  app.post(
    '',
    {
      config: { rateLimit: 'sign-in' },
      schema: {
        operationId: 'signInWithPasskey',
        summary: 'Sign in with a passkey',
        body: Strict({ credential: PresentedCredential }),
        response: {
          200: withHeaders(SignedIn, 'Set-Cookie'),
          401: ErrorOf(ERRORS.wrongPasskey),
          403: ErrorOf(ERRORS.passkeysUnavailable),
          503: ErrorBody,
        },
      },
    },
    async (request, reply) =>
      sendSignedIn(
        await passkeySignIns.signIn(request.validatedData.body.credential, clientOf(request)),
        reply,
      ),
  )
}

export default signInWithPasskey
