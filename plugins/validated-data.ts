/** Step 2 of the common processing (§1): `request.validatedData`, empty at first, filled after validation. */
import type {
  ContextConfigDefault,
  FastifyBaseLogger,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifyTypeProvider,
  FastifyTypeProviderDefault,
  RawRequestDefaultExpression,
  RawServerBase,
  RawServerDefault,
  RouteGenericInterface,
} from 'fastify'
import type { FastifyRequestType, ResolveFastifyRequestType } from 'fastify/types/type-provider.js'
import fp from 'fastify-plugin'

declare module 'fastify' {
  // Repeats all type parameters, so that the schema of a route types its input.
  interface FastifyRequest<
    RouteGeneric extends RouteGenericInterface = RouteGenericInterface,
    RawServer extends RawServerBase = RawServerDefault,
    RawRequest extends RawRequestDefaultExpression<RawServer> = RawRequestDefaultExpression<RawServer>,
    SchemaCompiler extends FastifySchema = FastifySchema,
    TypeProvider extends FastifyTypeProvider = FastifyTypeProviderDefault,
    ContextConfig = ContextConfigDefault,
    Logger extends FastifyBaseLogger = FastifyBaseLogger,
    RequestType extends FastifyRequestType = ResolveFastifyRequestType<
      TypeProvider,
      SchemaCompiler,
      RouteGeneric
    >,
  > {
    /** The validated input of the route. Handlers read input only from here. */
    validatedData: {
      body: RequestType['body']
      query: RequestType['query']
      params: RequestType['params']
    }
  }
}

type Done = () => void
type ValidatedData = FastifyRequest['validatedData']

const initialiseValidatedData = (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
  request.validatedData = {} as ValidatedData
  done()
}

/** Every part has passed a schema: `plugins/validation.ts` adds one wherever a route declares none. */
const fillValidatedData = (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
  const data = request.validatedData
  data.body = request.body
  data.query = request.query
  data.params = request.params
  done()
}

const validatedData = async (app: FastifyInstance): Promise<void> => {
  app.decorateRequest('validatedData', null as unknown as ValidatedData)
  app.addHook('onRequest', initialiseValidatedData)
  app.addHook('preHandler', fillValidatedData)
}

export default fp(validatedData, { name: 'validated-data', dependencies: ['sensible'] })
