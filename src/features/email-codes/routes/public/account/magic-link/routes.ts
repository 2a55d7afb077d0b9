import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { clientOf } from '#routes/request-context'
import {
  ACCEPTED,
  Accepted,
  ErrorBody,
  KnownEmail,
  NullableText,
  PresentedToken,
  Strict,
  Timestamp,
  withExample,
} from '#routes/schemas'

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

const magicLink: FastifyPluginAsyncTypebox = async app => {
  const { magicLinks } = app.services
  if (magicLinks === null) return

  app.post(
    '',
    {
      config: { rateLimit: 'mail' },
      schema: {
        operationId: 'requestMagicLink',
        summary: 'Mail a link to sign in with, if the account exists',
        body: Strict({ email: KnownEmail }),
        response: { 202: Accepted },
      },
    },
    async (request, reply) => {
      magicLinks.request(request.validatedData.body.email, clientOf(request))
      return reply.code(202).send(ACCEPTED)
    },
  )

  app.post(
    '/check',
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
}

export default magicLink
