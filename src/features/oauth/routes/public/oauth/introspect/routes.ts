import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ERRORS } from '#features/oauth/definitions'
import { ErrorOf } from '#routes/schemas'
import { clientRequestOf, serveClients } from '../../../endpoint.ts'
import { IntrospectedToken, PresentedTokenForm } from '../../../endpoint-schemas.ts'

const introspect: FastifyPluginAsyncTypebox = async app => {
  const { oauth } = app.services
  if (oauth === null) return
  serveClients(app)

  app.post(
    '',
    {
      config: { rateLimit: 'oauth-token' },
      schema: {
        operationId: 'introspectClientToken',
        summary: 'Ask whether a token is valid that was issued to the client, or for its resource (RFC 7662)',
        tags: ['oauth'],
        body: PresentedTokenForm,
        response: { 200: IntrospectedToken, 401: ErrorOf(ERRORS.invalidClient) },
      },
    },
    async request => {
      const { body } = request.validatedData
      const client = await oauth.authentication.authenticateConfidential(clientRequestOf(request, body))
      return oauth.introspection.introspect(body.token, client)
    },
  )
}

export default introspect
