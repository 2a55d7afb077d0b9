import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ACCEPTED, Accepted, KnownEmail, ReturnTo, Strict } from '#routes/schemas'

const forgotPassword: FastifyPluginAsyncTypebox = async app => {
  const { passwordResets, returnTargets } = app.services

  app.post(
    '',
    {
      config: { rateLimit: 'mail' },
      schema: {
        operationId: 'forgotPassword',
        summary: 'Mail a link to reset the password, if the account exists',
        body: Strict({ email: KnownEmail, returnTo: ReturnTo(returnTargets) }),
        response: { 202: Accepted },
      },
    },
    async (request, reply) => {
      const { email, returnTo } = request.validatedData.body
      passwordResets.request(email, request.clientAddress, returnTargets.parse(returnTo))
      return reply.code(202).send(ACCEPTED)
    },
  )
}

export default forgotPassword
