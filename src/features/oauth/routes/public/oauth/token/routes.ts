import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ERRORS } from '#features/oauth/definitions'
import { ErrorOf } from '#routes/schemas'
import { clientRequestOf, proofOf, serveClients } from '../../../endpoint.ts'
import { TokenForm, TokenResponse } from '../../../endpoint-schemas.ts'

const token: FastifyPluginAsyncTypebox = async app => {
  const { oauth } = app.services
  if (oauth === null) return
  serveClients(app)

  app.post(
    '',
    {
      config: { rateLimit: 'oauth-token' },
      schema: {
        operationId: 'requestToken',
        summary: 'Get an access token (RFC 6749 §3.2)',
        tags: ['oauth'],
        body: TokenForm,
        response: { 200: TokenResponse, 401: ErrorOf(ERRORS.invalidClient) },
      },
    },
    request =>
      oauth.tokenEndpoint.exchange({
        ...clientRequestOf(request, request.validatedData.body),
        proof: proofOf(request, '/oauth/token'),
      }),
  )
}

export default token
