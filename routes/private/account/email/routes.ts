import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { disconnectSignal, refuseImpersonation, userActor } from '../../../request-context.ts'
import { ACCEPTED, Accepted, Email, ErrorBody, PresentedPassword, Strict } from '../../../schemas.ts'

const EmailChange = Strict({ password: PresentedPassword, email: Email })

const email: FastifyPluginAsyncTypebox = async app => {
  const { emailAddresses } = app.services

  app.put(
    '',
    {
      config: { rateLimit: 'mail' },
      schema: {
        operationId: 'changeEmail',
        summary: 'Change your e-mail; takes effect when the link mailed to the new address is used',
        body: EmailChange,
        response: { 202: Accepted, 409: ErrorBody, 429: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      refuseImpersonation(request)
      const { body } = request.validatedData
      const owner = request.requirePrincipal()
      await emailAddresses.requestChange(owner, body, userActor(request), disconnectSignal(reply))
      return reply.code(202).send(ACCEPTED)
    },
  )
}

export default email
