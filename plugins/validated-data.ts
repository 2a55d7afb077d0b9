/** Step 2 of the common processing (§1): `request.validatedData`, empty at first, filled after validation. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import '#http/validated-data-type'

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

export default fp(validatedData, {
  name: 'validated-data',
  dependencies: ['sensible', 'request-durations', 'server-timing'],
})
