/** Token introspection (RFC 7662): other services ask whether an access token or API key is valid now. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { Introspection, Strict } from '../../schemas.ts'
import { serializeIntrospection } from '../../serializers.ts'

const Request = Strict({
  token: Type.String({
    text: 'any',
    description: 'An access token or an API key',
    examples: ['gate_pat_mN2xQ7tVb9KdRw3yLs5hJf8gTz1aXe4uNi6oBv0pCk4000000'],
  }),
  token_type_hint: Type.Optional(
    Type.String({ description: 'Ignored (RFC 7662 §2.1)', examples: ['access_token'] }),
  ),
})

const introspect: FastifyPluginAsyncTypebox = async app => {
  const { authenticator, userScopes } = app.services
  const allScopes = Object.keys(userScopes).join(' ')
  app.acceptForms()

  app.post(
    '',
    {
      config: { scope: 'tokens:introspect' },
      schema: {
        operationId: 'introspectToken',
        summary: 'Ask whether an access token or API key is valid now (RFC 7662); as a form or as JSON',
        body: Request,
        response: { 200: Introspection },
      },
    },
    async (request, reply) => {
      const principal = await authenticator.introspect(request.validatedData.body.token)
      reply.header('cache-control', 'no-store')
      return serializeIntrospection(principal, allScopes)
    },
  )
}

export default introspect
