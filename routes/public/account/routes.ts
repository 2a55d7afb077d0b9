import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { clientOf, disconnectSignal } from '../../request-context.ts'
import { withHeaders } from '../../response-headers.ts'
import {
  ACCEPTED,
  Accepted,
  Email,
  ErrorBody,
  KnownEmail,
  Name,
  NewPassword,
  PresentedPassword,
  SignedIn,
  Strict,
} from '../../schemas.ts'
import { sendSignedIn } from '../../serializers.ts'

const account: FastifyPluginAsyncTypebox = async app => {
  const { accounts, verifiedSignUps } = app.services
  const SignUp = Strict({
    email: Email,
    password: NewPassword(app.config.passwordMinLength),
    firstName: Type.Optional(Name),
    lastName: Type.Optional(Name),
  })
  const SignIn = Strict({ email: KnownEmail, password: PresentedPassword })

  app.post(
    '/sign-up',
    {
      config: { rateLimit: 'sign-up' },
      schema: {
        summary: 'Sign up',
        body: SignUp,
        response: {
          201: withHeaders(SignedIn, 'Location', 'Set-Cookie'),
          202: Accepted,
          409: ErrorBody,
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const { body } = request.validatedData
      if (app.config.requireEmailVerification) {
        await verifiedSignUps.register(body, request.clientAddress, disconnectSignal(reply))
        return reply.code(202).send(ACCEPTED)
      }
      const signedIn = await accounts.signUp(body, clientOf(request), disconnectSignal(reply))
      reply.code(201).header('location', '/account')
      return sendSignedIn(signedIn, reply)
    },
  )

  app.post(
    '/sign-in',
    {
      config: { rateLimit: 'sign-in' },
      schema: {
        summary: 'Sign in',
        body: SignIn,
        response: {
          200: withHeaders(SignedIn, 'Set-Cookie'),
          401: ErrorBody,
          403: ErrorBody,
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const signedIn = await accounts.signIn(
        request.validatedData.body,
        clientOf(request),
        request.principal?.cachedUser.user ?? null,
        disconnectSignal(reply),
      )
      return sendSignedIn(signedIn, reply)
    },
  )
}

export default account
