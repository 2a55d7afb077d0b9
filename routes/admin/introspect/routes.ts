/** Token introspection (RFC 7662): other services ask whether access tokens or API keys are valid now. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ServiceError } from '#base/errors'
import { Introspection, Introspections, Strict } from '../../schemas.ts'
import { serializeIntrospection } from '../../serializers.ts'

/** Bytes of a body: a hundred tokens, of which few are long. */
const BODY_LIMIT = 131_072

const EXAMPLE = 'gate_pat_mN2xQ7tVb9KdRw3yLs5hJf8gTz1aXe4uNi6oBv0pCk4000000'

const Request = Strict(
  {
    token: Type.Optional(
      Type.String({ text: 'any', description: 'An access token or an API key', examples: [EXAMPLE] }),
    ),
    tokens: Type.Optional(
      Type.Array(Type.String({ text: 'any', examples: [EXAMPLE] }), {
        maxItems: 100,
        description: 'In place of `token`: several at once, whose states are `results`',
      }),
    ),
    token_type_hint: Type.Optional(
      Type.String({ description: 'Ignored (RFC 7662 §2.1)', examples: ['access_token'] }),
    ),
  },
  // Either of the two.
  { examples: [{ token: EXAMPLE, token_type_hint: 'access_token' }] },
)

const introspect: FastifyPluginAsyncTypebox = async app => {
  const { authenticator, userScopes } = app.services
  const allScopes = Object.keys(userScopes).join(' ')
  app.acceptForms()

  const stateOf = async (token: string) =>
    serializeIntrospection(await authenticator.introspect(token), allScopes)

  app.post(
    '',
    {
      config: { scope: 'tokens:introspect' },
      bodyLimit: BODY_LIMIT,
      schema: {
        operationId: 'introspectToken',
        summary: 'Ask whether access tokens or API keys are valid now (RFC 7662); as a form or as JSON',
        body: Request,
        response: { 200: Type.Union([Introspection, Introspections]) },
      },
    },
    async (request, reply) => {
      const { token, tokens } = request.validatedData.body
      reply.header('cache-control', 'no-store')
      if (tokens === undefined) {
        if (token === undefined) throw new ServiceError('tokenRequired')
        return stateOf(token)
      }
      if (token !== undefined) throw new ServiceError('tokenAndTokens')
      return { results: await Promise.all(tokens.map(stateOf)) }
    },
  )
}

export default introspect
