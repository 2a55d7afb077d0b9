import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'

/** The prefix (RFC 8615 §3), because tools ignore folders whose name begins with a dot. */
export const autoPrefix = '/.well-known'

/** Verifiers ask again after this many seconds. The rotation of keys waits for it (docs/operations.md). */
const MAX_AGE = 300

const JsonWebKey = Type.Object(
  {
    kty: Type.String(),
    crv: Type.Optional(Type.String()),
    x: Type.Optional(Type.String()),
    y: Type.Optional(Type.String()),
    n: Type.Optional(Type.String()),
    e: Type.Optional(Type.String()),
    kid: Type.String(),
    alg: Type.String(),
    use: Type.Literal('sig'),
  },
  {
    title: 'JsonWebKey',
    examples: [
      {
        kty: 'OKP',
        crv: 'Ed25519',
        x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
        kid: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
        alg: 'EdDSA',
        use: 'sig',
      },
    ],
  },
)

const JsonWebKeySet = Type.Object({ keys: Type.Array(JsonWebKey) }, { title: 'JsonWebKeySet' })

const wellKnown: FastifyPluginAsyncTypebox = async app => {
  const keySet = { keys: [...app.services.jwks] }

  app.get(
    '/jwks.json',
    {
      schema: {
        operationId: 'getJsonWebKeySet',
        summary: 'Public keys of access tokens (RFC 7517); no keys if JWT_ALGORITHM is HS256',
        tags: ['service'],
        response: { 200: JsonWebKeySet },
      },
    },
    async (_request, reply) => {
      reply.header('cache-control', `public, max-age=${MAX_AGE}`)
      return keySet
    },
  )

  // For password managers (https://www.w3.org/TR/change-password-url/).
  if (app.config.hasPages)
    app.get('/change-password', { schema: { hide: true } }, (_request, reply) =>
      reply.redirectToPage('security/password'),
    )
}

export default wellKnown
