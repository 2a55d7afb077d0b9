import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ServiceError } from '../../../../src/errors.ts'
import { Account, ErrorBody, FormText, PresentedToken, Strict } from '../../../schemas.ts'
import { serializeAccount } from '../../../serializers.ts'

const Token = Strict({ token: PresentedToken })

/** The page behind the link in a mail. Mail scanners open links, so only its button verifies. */
const verifyEmailPages: FastifyPluginAsyncTypebox = async app => {
  const { emailAddresses } = app.services
  const { webUrl, hasPages } = app.config
  app.servePages()

  app.get(
    '',
    {
      // Validated by the handler, so that an invalid token redirects too.
      schema: { hide: true, querystring: Type.Object({ token: Type.Optional(Type.Unknown()) }) },
    },
    async (request, reply) => {
      const { token } = request.validatedData.query
      const presented = typeof token === 'string' ? token : ''
      try {
        await emailAddresses.check(presented)
      } catch (error) {
        if (hasPages || !(error instanceof ServiceError)) throw error
        reply.header('cache-control', 'no-store')
        throw new ServiceError(error.code, { redirectTo: webUrl, cause: error.cause })
      }
      return reply.sendPage((pages, context) => pages.confirmEmailPage(context, presented))
    },
  )

  app.post(
    '/confirm',
    { schema: { hide: true, body: Strict({ token: FormText }) } },
    async (request, reply) => {
      const { body } = request.validatedData
      const call = { method: 'POST', path: '/account/verify-email', body } as const
      const response = await app.callApi(request, call)
      reply.relay(response)
      if (!hasPages) return reply.redirectToWebApp(response)
      return reply.sendPage((pages, context) =>
        response.status === 200
          ? pages.emailConfirmedPage(context, response.body.email)
          : pages.errorPage(context, response.errors, context.texts.confirmEmailFailed),
      )
    },
  )
}

const verifyEmail: FastifyPluginAsyncTypebox = async app => {
  const { emailAddresses } = app.services

  app.post(
    '',
    {
      schema: {
        operationId: 'verifyEmail',
        summary: 'Verify an e-mail address with a mailed token',
        body: Token,
        response: { 200: Account, 409: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const user = await emailAddresses.verify(request.validatedData.body.token, request.clientAddress)
      reply.header('cache-control', 'no-store')
      return serializeAccount(user)
    },
  )

  app.register(verifyEmailPages)
}

export default verifyEmail
