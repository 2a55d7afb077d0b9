/** Where clients send browsers (RFC 6749 §3.1). */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type TProperties, Type } from '@sinclair/typebox'

const Parameter = (maxLength: number) => Type.Optional(Type.String({ maxLength }))

/** Each may be given once, except `resource`; unknown ones are ignored (RFC 6749 §3.1). */
const parameters = {
  ...{ client_id: Parameter(256), redirect_uri: Parameter(2_048), response_type: Parameter(64) },
  ...{ scope: Parameter(4_096), state: Parameter(2_048), prompt: Parameter(64), max_age: Parameter(16) },
  ...{ nonce: Parameter(512), acr_values: Parameter(512), login_hint: Parameter(254) },
  ...{ code_challenge: Parameter(128), code_challenge_method: Parameter(16) },
  ...{ request: Parameter(16_384), request_uri: Parameter(2_048) },
  resource: Type.Optional(
    Type.Unsafe<string | readonly string[]>({
      type: ['string', 'array'],
      maxLength: 2_048,
      items: { type: 'string', maxLength: 2_048 },
      maxItems: 20,
    }),
  ),
} satisfies TProperties

const authorize: FastifyPluginAsyncTypebox = async app => {
  const { oauth } = app.services
  if (oauth === null || !app.config.hasPages) return
  app.servePages()

  app.get(
    '',
    {
      config: { rateLimit: 'oauth-authorize' },
      schema: { hide: true, querystring: Type.Object(parameters, { additionalProperties: true }) },
    },
    async (request, reply) => {
      const { resource, ...others } = request.validatedData.query
      const principal = request.accessTokenSource === 'cookie' ? request.principal : null
      const resources = resource === undefined ? [] : [resource].flat()
      const step = await oauth.authorizations.begin({ ...others, resource: resources }, principal)
      if (step.kind === 'page') return reply.redirectToPage(`oauth/consent?request=${step.request}`)
      return reply.header('cache-control', 'no-store').redirect(step.url, 303)
    },
  )
}

export default authorize
