/** Codes and links that are mailed to sign in. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ERRORS } from '#features/email-codes/email-codes'
import { clientOf } from '#routes/request-context'
import { withHeaders } from '#routes/response-headers'
import {
  ACCEPTED,
  Accepted,
  ErrorBody,
  ErrorOf,
  KnownEmail,
  NullableText,
  OptionalCode,
  PresentedToken,
  ReturnTo,
  SignedIn,
  Strict,
  Timestamp,
  withExample,
} from '#routes/schemas'
import { sendSignedIn } from '#routes/signed-in'

/** Any text: a code of another form is wrong, not invalid. */
const PresentedEmailCode = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'The eight digits of the newest mail',
  examples: ['12345678'],
})

const emailCodeRoutes: FastifyPluginAsyncTypebox = async app => {
  const { emailCodes } = app.services
  if (emailCodes === null) return

  app.post(
    '/email-code',
    {
      config: { rateLimit: 'mail' },
      schema: {
        operationId: 'requestEmailCode',
        summary: 'Mail a code to sign in with, if the account exists',
        body: Strict({ email: KnownEmail }),
        response: { 202: Accepted },
      },
    },
    async (request, reply) => {
      emailCodes.request(request.validatedData.body.email, request.clientAddress)
      return reply.code(202).send(ACCEPTED)
    },
  )

  app.post(
    '/sign-in/email-code',
    {
      config: { rateLimit: 'sign-in' },
      schema: {
        operationId: 'signInByEmailCode',
        summary: 'Sign in with a mailed code',
        body: Strict({ email: KnownEmail, emailCode: PresentedEmailCode, code: OptionalCode }),
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

const MagicLink = Type.Object(
  {
    email: Type.String({ examples: ['ann@example.com'] }),
    emailVerified: Type.Boolean(),
    requestedAt: Timestamp,
    network: withExample(NullableText, '192.0.2.0/24'),
    userAgent: withExample(NullableText, 'curl/8.14.1'),
  },
  { title: 'MagicLink' },
)

const magicLinkRoutes: FastifyPluginAsyncTypebox = async app => {
  const { magicLinks, returnTargets } = app.services
  if (magicLinks === null) return

  app.post(
    '/magic-link',
    {
      config: { rateLimit: 'mail' },
      schema: {
        operationId: 'requestMagicLink',
        summary: 'Mail a link to sign in with, if the account exists',
        body: Strict({ email: KnownEmail, returnTo: ReturnTo(returnTargets) }),
        response: { 202: Accepted },
      },
    },
    async (request, reply) => {
      const { email, returnTo } = request.validatedData.body
      magicLinks.request(email, clientOf(request), returnTargets.parse(returnTo))
      return reply.code(202).send(ACCEPTED)
    },
  )

  app.post(
    '/magic-link/check',
    {
      config: { rateLimit: 'sign-in' },
      schema: {
        operationId: 'checkMagicLink',
        summary: 'The account of a mailed link, and from where it was asked for. The link stays valid',
        body: Strict({ token: PresentedToken }),
        response: { 200: MagicLink, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { user, link } = await magicLinks.check(request.validatedData.body.token)
      const { network, userAgent, createdAt } = link
      reply.header('cache-control', 'no-store')
      return {
        ...{ email: user.email, emailVerified: user.emailVerified },
        ...{ requestedAt: new Date(createdAt).toISOString(), network, userAgent },
      }
    },
  )

  app.post(
    '/sign-in/magic-link',
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

const mailedSignIns: FastifyPluginAsyncTypebox = async app => {
  app.register(emailCodeRoutes)
  app.register(magicLinkRoutes)
}

export default mailedSignIns
