import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ERRORS } from '#features/oauth/definitions'
import { ErrorOf } from '#routes/schemas'
import { clientRequestOf, proofOf, serveClients } from '../../../endpoint.ts'
import { PushedForm, PushedResponse } from '../../../endpoint-schemas.ts'

const par: FastifyPluginAsyncTypebox = async app => {
  const { oauth } = app.services
  if (oauth === null || !app.config.hasPages) return
  serveClients(app)

  app.post(
    '',
    {
      config: { rateLimit: 'oauth-token' },
      schema: {
        operationId: 'pushAuthorizationRequest',
        summary: 'Send an authorization request, whose name the browser brings (RFC 9126)',
        tags: ['oauth'],
        body: PushedForm,
        response: { 201: PushedResponse, 401: ErrorOf(ERRORS.invalidClient) },
      },
    },
    async (request, reply) => {
      const { body } = request.validatedData
      const client = await oauth.authentication.authenticate(clientRequestOf(request, body))
      const pushed = await oauth.pushedRequests.push(body, client, proofOf(request, '/oauth/par'))
      reply.code(201)
      return pushed
    },
  )
}

export default par
