import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { SIGN_UP_FIELDS } from '#core/users/fields'
import { clientOf, disconnectSignal, preferredLocaleOf, sessionUserOf } from '../../request-context.ts'
import { withHeaders } from '../../response-headers.ts'
import {
  ACCEPTED,
  Accepted,
  Email,
  ErrorBody,
  ErrorOf,
  fieldProperties,
  KnownEmail,
  NewPassword,
  OptionalCode,
  PresentedPassword,
  ReturnTo,
  SignedIn,
  Strict,
} from '../../schemas.ts'
import { sendSignedIn } from '../../signed-in.ts'

const account: FastifyPluginAsyncTypebox = async app => {
  const { signUps, passwordSignIns, returnTargets } = app.services
  const SignUp = Strict({
    email: Email,
    password: NewPassword(app.config.passwordMinLength),
    ...fieldProperties(app.config.metadataSchemas, SIGN_UP_FIELDS),
    returnTo: ReturnTo(returnTargets),
  })
  const SignIn = Strict({
    email: KnownEmail,
    password: PresentedPassword,
    code: OptionalCode,
  })

  app.post(
    '/sign-up',
    {
      config: { rateLimit: 'mail' },
      preParsing: (_request, _reply, payload, done) => done(signUps.refusal(), payload),
      schema: {
        operationId: 'signUp',
        summary: 'Sign up',
        body: SignUp,
        response: {
          201: withHeaders(SignedIn, 'Location', 'Set-Cookie'),
          202: Accepted,
          409: ErrorOf('emailTaken'),
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const { returnTo, ...fields } = request.validatedData.body
      const signUp = {
        locale: preferredLocaleOf(request),
        ...fields,
        returnTo: returnTargets.parse(returnTo),
      }
      const result = await signUps.signUp(signUp, clientOf(request), disconnectSignal(reply))
      if (result === null) return reply.code(202).send(ACCEPTED)
      reply.code(201).header('location', app.prefix)
      return sendSignedIn(result, reply)
    },
  )

  app.post(
    '/sign-in',
    {
      config: { rateLimit: 'sign-in' },
      preParsing: (_request, _reply, payload, done) => done(passwordSignIns.refusal(), payload),
      schema: {
        operationId: 'signIn',
        summary: 'Sign in',
        body: SignIn,
        response: {
          200: withHeaders(SignedIn, 'Set-Cookie'),
          401: ErrorOf('wrongCredentials'),
          403: ErrorOf('accountDisabled'),
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const result = await passwordSignIns.signIn(
        request.validatedData.body,
        clientOf(request),
        sessionUserOf(request),
        disconnectSignal(reply),
      )
      return sendSignedIn(result, reply)
    },
  )
}

export default account
