import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { userActor } from '#routes/request-context'
import { ACCEPTED, Accepted, OptionalBody, ReturnTo } from '#routes/schemas'

const resend: FastifyPluginAsyncTypebox = async app => {
  const { emailAddresses, returnTargets } = app.services

  app.post(
    '',
    {
      config: { rateLimit: 'mail' },
      schema: {
        operationId: 'resendVerification',
        summary: 'Mail the verification link again, unless the e-mail is verified',
        body: OptionalBody({ returnTo: ReturnTo(returnTargets) }),
        response: { 202: Accepted },
      },
    },
    async (request, reply) => {
      const returnTo = request.validatedData.body?.returnTo
      const target = returnTargets.parse(returnTo)
      await emailAddresses.resendVerification(request.requirePrincipal(), userActor(request), target)
      return reply.code(202).send(ACCEPTED)
    },
  )
}

export default resend
