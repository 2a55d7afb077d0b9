import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ACCEPTED, Accepted, KnownEmail, Strict } from '#routes/schemas'

const forgotPassword: FastifyPluginAsyncTypebox = async app => {
  const { passwordResets } = app.services

  app.post(
    '',
    {
      config: { rateLimit: 'mail' },
      schema: {
        operationId: 'forgotPassword',
        summary: 'Mail a link to reset the password, if the account exists',
        body: Strict({ email: KnownEmail }),
        response: { 202: Accepted },
      },
    },
    async (request, reply) => {
      passwordResets.request(request.validatedData.body.email, request.clientAddress)
      return reply.code(202).send(ACCEPTED)
    },
  )
}

export default forgotPassword
