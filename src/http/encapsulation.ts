/** Keeps what a host application has set from the routes of the service, and the routes from the host's OpenAPI document. */
import Fastify, { type FastifyInstance, type FastifySerializerCompiler } from 'fastify'
import { parseQuery } from './query-string.ts'

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

/**
 * @param scope the instance of the service, before its plugins and routes.
 * @param logSerializers for lines of requests.
 */
export const isolateFromHost = async (scope: FastifyInstance, logSerializers: object): Promise<void> => {
  // A host's compiler may take other schemas than JSON Schema.
  if (scope.serializerCompiler !== undefined) scope.setSerializerCompiler(await defaultSerializerCompiler())
  scope.setReplySerializer(null as never)
  // For routes and for unknown ones, whose URL may contain a token too.
  const { childLoggerFactory } = scope
  scope.setChildLoggerFactory((logger, bindings, options, request) => {
    const serializers = { ...options.serializers, ...logSerializers }
    return childLoggerFactory.call(scope, logger, bindings, { ...options, serializers }, request)
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
