import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ServiceError } from '../../../../src/errors.ts'
import { withHeaders } from '../../../response-headers.ts'
import { Account, ErrorBody, PresentedToken, Strict } from '../../../schemas.ts'
import { serializeAccount } from '../../../serializers.ts'

const Token = Strict({ token: PresentedToken })

/** The error for clients other than browsers, with the target of the redirect as `Location`. */
const ErrorWithTarget = withHeaders(ErrorBody, 'Location')

const verifyEmail: FastifyPluginAsyncTypebox = async app => {
  const { emailAddresses } = app.services
  const { webUrl } = app.config

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

  app.get(
    '',
    {
      schema: {
        operationId: 'followVerificationLink',
        summary:
          'The link in a mail: verifies and redirects to the web application, with `?error=` if it fails',
        // Validated by the handler, so that an invalid token redirects too.
        querystring: Type.Object({ token: Type.Optional(Type.Unknown()) }),
        response: {
          303: withHeaders(Type.Null(), 'Location'),
          400: ErrorWithTarget,
          409: ErrorWithTarget,
          503: ErrorWithTarget,
        },
      },
    },
    async (request, reply) => {
      const { token } = request.validatedData.query
      const presented = typeof token === 'string' ? token : ''
      reply.header('cache-control', 'no-store')
      try {
        // HEAD, which mail scanners send, does not use up the token.
        if (request.method === 'HEAD') await emailAddresses.check(presented)
        else await emailAddresses.verify(presented, request.clientAddress)
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        throw new ServiceError(error.code, { redirectTo: webUrl, cause: error.cause })
      }
      return reply.redirect(webUrl, 303)
    },
  )
}

export default verifyEmail
