/** Where clients send browsers (RFC 6749 §3.1). */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type TProperties, Type } from '@sinclair/typebox'
import { authorizationProperties, Parameter } from '../../../endpoint-schemas.ts'

const parameters = {
  ...authorizationProperties,
  request_uri: Parameter(2_048, 'Of a pushed request'),
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
