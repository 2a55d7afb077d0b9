import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ERRORS } from '#features/oauth/definitions'
import { ErrorOf } from '#routes/schemas'
import { clientRequestOf, serveClients } from '../../../endpoint.ts'
import { PresentedTokenForm } from '../../../endpoint-schemas.ts'

const revoke: FastifyPluginAsyncTypebox = async app => {
  const { oauth } = app.services
  if (oauth === null) return
  serveClients(app)

  app.post(
    '',
    {
      config: { rateLimit: 'oauth-token' },
      schema: {
        operationId: 'revokeClientToken',
        summary: 'End a token that was issued to the client; 200 also for any other text (RFC 7009)',
        tags: ['oauth'],
        body: PresentedTokenForm,
        response: {
          200: Type.Object({}, { title: 'RevokedToken' }),
          401: ErrorOf(ERRORS.invalidClient),
        },
      },
    },
    async request => {
      const { body } = request.validatedData
      const client = await oauth.authentication.authenticate(clientRequestOf(request, body))
      await oauth.introspection.revoke(body.token, client)
      return {}
    },
  )
}

export default revoke
