import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ServiceError } from '#base/errors'
import { ERRORS } from '#features/oauth/definitions'
import { resourceMetadata, serverMetadata } from '#features/oauth/metadata'

/** The prefix (RFC 8615 §3), because tools ignore folders whose name begins with a dot. */
export const autoPrefix = '/.well-known'

const NAMES = { 'oauth-authorization-server': 'Server', 'openid-configuration': 'OpenId' } as const

const Metadata = Type.Object(
  { issuer: Type.String(), jwks_uri: Type.String() },
  {
    title: 'ServerMetadata',
    additionalProperties: true,
    examples: [
      { issuer: 'https://id.example.com', jwks_uri: 'https://id.example.com/.well-known/jwks.json' },
    ],
  },
)

const ResourceMetadata = Type.Object(
  { resource: Type.String(), authorization_servers: Type.Array(Type.String()) },
  {
    title: 'ResourceMetadata',
    additionalProperties: true,
    examples: [{ resource: 'https://id.example.com', authorization_servers: ['https://id.example.com'] }],
  },
)

const CACHED = 'public, max-age=300'

const wellKnown: FastifyPluginAsyncTypebox = async app => {
  const { config, services } = app
  // With a secret alone nobody else can verify tokens.
  if (services.jwks.length === 0) return
  const metadata = serverMetadata(config, services.languages.tags, services.oauth) as {
    issuer: string
    jwks_uri: string
  }
  // RFC 8414 §3.1: the path of an issuer follows the name of the document.
  const { pathname } = new URL(config.publicUrl)
  const paths = pathname === '/' ? [''] : ['', pathname]

  for (const [name, id] of Object.entries(NAMES))
    for (const path of paths)
      app.get(
        `/${name}${path}`,
        {
          schema: {
            operationId: `get${id}Metadata${path === '' ? '' : 'OfPath'}`,
            summary:
              'Metadata of the authorization server, for clients and for verifiers of tokens (RFC 8414)',
            tags: ['oauth'],
            response: { 200: Metadata },
          },
        },
        async (_request, reply) => {
          reply.header('cache-control', CACHED)
          return metadata
        },
      )

  if (services.oauth === null) return
  const { resources, userScopes } = services
  const { origin } = new URL(config.publicUrl)
  const name = '/oauth-protected-resource'

  app.get(
    name,
    {
      schema: {
        operationId: 'getResourceMetadata',
        summary: 'Metadata of the service as a resource that tokens open (RFC 9728)',
        tags: ['oauth'],
        response: { 200: ResourceMetadata },
      },
    },
    async (_request, reply) => {
      reply.header('cache-control', CACHED)
      return resourceMetadata(config, null, userScopes)
    },
  )

  // Of resources with the origin of the service, and of the service if PUBLIC_URL has a path.
  app.get(
    `${name}/*`,
    { schema: { hide: true, response: { 200: ResourceMetadata } } },
    async (request, reply) => {
      const [path = ''] = request.url.split('?', 1)
      const resource = await resources.named(origin + path.slice(path.indexOf(name) + name.length))
      if (resource === undefined) throw new ServiceError(ERRORS.resourceNotFound)
      reply.header('cache-control', CACHED)
      return resourceMetadata(config, resource, userScopes)
    },
  )
}

export default wellKnown
