import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ACCEPTED, Accepted, KnownEmail, Strict } from '#routes/schemas'

const emailCode: FastifyPluginAsyncTypebox = async app => {
  const { emailCodes } = app.services
  if (emailCodes === null) return

  app.post(
    '',
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
}

export default emailCode
