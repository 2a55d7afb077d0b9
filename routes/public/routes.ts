import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ServiceError } from '#base/errors'
import packageJson from '../../package.json' with { type: 'json' }
import { sessionUserOf } from '../request-context.ts'
import { withHeaders } from '../response-headers.ts'

const Service = Type.Object(
  {
    name: Type.Literal('gatehouse'),
    version: Type.String({ examples: [packageJson.version] }),
    docs: Type.Optional(Type.String({ examples: ['/docs'] })),
    openapi: Type.Optional(Type.String({ examples: ['/openapi.json'] })),
  },
  { title: 'Service' },
)

const root: FastifyPluginAsyncTypebox = async app => {
  const { hasDocs, hasPages } = app.config
  // Without the slash at the end that the router adds to an empty prefix.
  const base = app.prefix.replace(/\/$/, '')
  const service = {
    name: 'gatehouse',
    version: packageJson.version,
    ...(hasDocs && { docs: `${base}/docs`, openapi: `${base}/openapi.json` }),
  } as const

  app.get(
    '/',
    {
      schema: {
        operationId: 'getService',
        summary:
          'Name, version and documentation of the service; redirects browsers to its pages, or to the documentation',
        tags: ['service'],
        response: { 200: Service, 303: withHeaders(Type.Null(), 'Location') },
      },
    },
    async (request, reply) => {
      // The router treats `*` as `/`, but only OPTIONS has this target (RFC 9112 §3.2.4).
      if (request.raw.url === '*') throw new ServiceError('routeNotFound')
      reply.vary('accept')
      if (request.accepts().type(['json', 'html']) !== 'html') return service
      if (hasPages) return reply.redirectToPage(sessionUserOf(request) === null ? 'sign-in' : 'security')
      return hasDocs ? reply.redirect(`${base}/docs`, 303) : service
    },
  )
}

export default root
