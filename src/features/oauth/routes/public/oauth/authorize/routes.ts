/** Where clients send browsers (RFC 6749 §3.1), by a link or by a form (OpenID Connect Core §3.1.2.1). */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type TProperties, Type } from '@sinclair/typebox'
import type { FastifyReply } from 'fastify'
import type { AuthorizationParameters } from '#features/oauth/authorization-request'
import { withLocales } from '#http/pages/return-links'
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

/** What stands before the pages reads no cookie: another site can send the form, and its browsers leave some of them out. */
const authorize: FastifyPluginAsyncTypebox = async app => {
  const { oauth } = app.services
  if (oauth === null || !app.config.hasPages) return
  app.servePages()
  app.acceptForms({ isOnly: true, repeated: ['resource'] })

  const begin = async (
    {
      resource,
      ...others
    }: Omit<AuthorizationParameters, 'resource'> & { resource?: string | readonly string[] },
    reply: FastifyReply,
  ) => {
    const resources = resource === undefined ? [] : [resource].flat()
    const step = await oauth.authorizations.begin({ ...others, resource: resources })
    if (step.kind === 'page')
      return reply.redirectToPage(withLocales(`oauth/consent?request=${step.request}`, step.locales))
    return reply.header('cache-control', 'no-store').redirect(step.url, 303)
  }

  const schema = Type.Object(parameters, { additionalProperties: true })
  app.get(
    '',
    { config: { rateLimit: 'oauth-authorize' }, schema: { hide: true, querystring: schema } },
    (request, reply) => begin(request.validatedData.query, reply),
  )
  app.post(
    '',
    {
      config: { rateLimit: 'oauth-authorize', isOpenToSites: true },
      schema: { hide: true, body: schema },
    },
    (request, reply) => begin(request.validatedData.body, reply),
  )
}

export default authorize
