/** Keeps what a host application has set from the routes of the service, and the routes from the host's OpenAPI document. */
import type { IncomingMessage } from 'node:http'
import Fastify, { type FastifyInstance, type FastifySerializerCompiler } from 'fastify'
import { createRequestIds, isRequestId } from './request-ids.ts'
import { withTrace } from './request-log.ts'
import { parseQuery } from './server-options.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the service's own document describes the route, while `schema.hide` excludes it from the host's. */
    isDocumented?: boolean
  }
}

/** Fastify's own compiler, which it creates when an app with a response schema becomes ready. */
const defaultSerializerCompiler = async (): Promise<FastifySerializerCompiler<unknown>> => {
  const app = Fastify({ logger: false })
  app.get('/', { schema: { response: { 200: { type: 'object' } } } }, async () => ({}))
  await app.ready()
  const { serializerCompiler } = app
  await app.close()
  if (serializerCompiler === undefined) throw new Error('Fastify has no serializer compiler')
  return serializerCompiler
}

/** The getter of what `genReqId` or `setGenReqId` has set, which Fastify's types lack. */
interface WithRequestIds {
  readonly genReqId: (request: IncomingMessage) => unknown
}

/**
 * The host's own ids. One that its function takes from what a client sent may not be valid in a response: it is replaced. Fastify's
 * `requestIdHeader` has precedence over both.
 */
const requestIdsOf = (host: FastifyInstance): ((request: IncomingMessage) => string) => {
  const { genReqId } = host as unknown as WithRequestIds
  const { next } = createRequestIds([])
  return request => {
    const id = genReqId(request)
    return isRequestId(id) ? id : next()
  }
}

/**
 * @param scope the instance of the service, before its plugins and routes.
 * @param logSerializers for lines of requests.
 */
export const isolateFromHost = async (scope: FastifyInstance, logSerializers: object): Promise<void> => {
  // A host's compiler may take other schemas than JSON Schema.
  if (scope.serializerCompiler !== undefined) scope.setSerializerCompiler(await defaultSerializerCompiler())
  scope.setReplySerializer(null as never)
  scope.setGenReqId(requestIdsOf(scope))
  // For routes and for unknown ones, whose URL may contain a token too.
  const { childLoggerFactory } = scope
  scope.setChildLoggerFactory((logger, bindings, options, request) => {
    const serializers = { ...options.serializers, ...logSerializers }
    const traced = withTrace(bindings, request)
    return childLoggerFactory.call(scope, logger, traced, { ...options, serializers }, request)
  })
  scope.addHook('onRoute', route => {
    route.config = { ...route.config, isDocumented: route.schema?.hide !== true }
    route.schema = { ...route.schema, hide: true }
  })
  // The parser belongs to the server.
  scope.addHook('onRequest', function parseQueryString(request, _reply, done) {
    request.query = parseQuery(request.url.split('?', 2)[1] ?? '')
    done()
  })
}
