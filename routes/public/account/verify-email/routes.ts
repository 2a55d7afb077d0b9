import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ServiceError } from '../../../../src/errors.ts'
import { withHeaders } from '../../../response-headers.ts'
import { Account, ErrorBody, PresentedToken, Strict } from '../../../schemas.ts'
import { serializeAccount } from '../../../serializers.ts'

const Token = Strict({ token: PresentedToken })

/** To whoever is no browser: an error that says where a browser would have been sent. */
const LedOn = withHeaders(ErrorBody, 'Location')

const verifyEmail: FastifyPluginAsyncTypebox = async app => {
  const { emailAddresses, userCache } = app.services
  const { webUrl } = app.config

  app.post(
    '',
    {
      schema: {
        summary: 'Show by a mailed token that an e-mail is the own one',
        body: Token,
        response: { 200: Account, 409: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const user = await emailAddresses.verify(request.validatedData.body.token, request.clientAddress)
      reply.header('cache-control', 'no-store')
      return serializeAccount(userCache.withLatest(user))
    },
  )

  app.get(
    '',
    {
      schema: {
        summary: 'The link in a mail: leads on to the web application, with `?error=` when it is of no use',
        // Whatever is wrong with it, whoever follows the link is led on: so the handler judges.
        querystring: Type.Object({ token: Type.Optional(Type.Unknown()) }),
        response: { 303: withHeaders(Type.Null(), 'Location'), 400: LedOn, 409: LedOn, 503: LedOn },
      },
    },
    async (request, reply) => {
      const { token } = request.validatedData.query
      const presented = typeof token === 'string' ? token : ''
      reply.header('cache-control', 'no-store')
      try {
        // What only looks whether the link is there, as scanners of mails do, uses up nothing.
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
