import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { userActor } from '#routes/request-context'
import { ACCEPTED, Accepted, Email, ErrorOf, ReturnTo, Strict } from '#routes/schemas'

const email: FastifyPluginAsyncTypebox = async app => {
  const { emailAddresses, returnTargets } = app.services

  app.put(
    '',
    {
      config: { rateLimit: 'mail', reauthenticate: true },
      schema: {
        operationId: 'changeEmail',
        summary: 'Change your e-mail; takes effect when the link mailed to the new address is used',
        body: Strict({ email: Email, returnTo: ReturnTo(returnTargets) }),
        response: { 202: Accepted, 409: ErrorOf('emailTaken') },
      },
    },
    async (request, reply) => {
      const { email, returnTo } = request.validatedData.body
      const target = returnTargets.parse(returnTo)
      await emailAddresses.requestChange(request.requirePrincipal(), email, userActor(request), target)
      return reply.code(202).send(ACCEPTED)
    },
  )
}

export default email
