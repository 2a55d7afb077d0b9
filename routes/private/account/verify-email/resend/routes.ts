import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { userActor } from '#routes/request-context'
import { ACCEPTED, Accepted } from '#routes/schemas'

const resend: FastifyPluginAsyncTypebox = async app => {
  const { emailAddresses } = app.services

  app.post(
    '',
    {
      config: { rateLimit: 'mail' },
      schema: {
        operationId: 'resendVerification',
        summary: 'Mail the verification link again, unless the e-mail is verified',
        response: { 202: Accepted },
      },
    },
    async (request, reply) => {
      await emailAddresses.resendVerification(request.requirePrincipal(), userActor(request))
      return reply.code(202).send(ACCEPTED)
    },
  )
}

export default resend
