import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { clientOf } from '../../client-of.ts'
import { disconnectSignal } from '../../disconnect-signal.ts'
import { presentSignedIn } from '../../presenters.ts'
import { Email, ErrorBody, Name, NewPassword, PresentedPassword, SignedIn, Strict } from '../../schemas.ts'

const account: FastifyPluginAsyncTypebox = async app => {
  const { accounts } = app.services
  const SignUp = Strict({
    email: Email,
    password: NewPassword(app.config.passwordMinLength),
    firstName: Type.Optional(Name),
    lastName: Type.Optional(Name),
  })
  const SignIn = Strict({ email: Email, password: PresentedPassword })

  app.post(
    '/sign-up',
    {
      schema: {
        summary: 'Open an account',
        body: SignUp,
        response: { 201: SignedIn, 409: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const signedIn = await accounts.signUp(
        request.validatedData.body,
        clientOf(request),
        disconnectSignal(reply),
      )
      reply.code(201).header('location', '/account')
      return presentSignedIn(signedIn, reply)
    },
  )

  app.post(
    '/sign-in',
    {
      schema: {
        summary: 'Open a session',
        body: SignIn,
        response: { 200: SignedIn, 401: ErrorBody, 403: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { body } = request.validatedData
      return presentSignedIn(await accounts.signIn(body, clientOf(request), disconnectSignal(reply)), reply)
    },
  )
}

export default account
