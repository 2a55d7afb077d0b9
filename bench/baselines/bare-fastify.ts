/** The baseline: Fastify alone, configured as in its own benchmarks, with one route that sends a constant object. */
import Fastify from 'fastify'

export interface Baseline {
  readonly path: string
  /** The schema of the JSON body, for a route with POST; by default the route has GET and no body. */
  readonly requestBody?: object
  /** By default 200. */
  readonly status?: number
  /** Header fields in addition to Fastify's own. */
  readonly headers: Readonly<Record<string, string>>
  /** The response schema of the service's route, so that serialization costs the same. */
  readonly schema: object
  readonly body: unknown
}

/** Header fields of every response. An id is random in the service: here it only has the same length. */
export const COMMON_FIELDS = { 'x-content-type-options': 'nosniff', 'x-request-id': '0'.repeat(20) }

/** Listens on the loopback interface and the port of the environment, and prints the same line as the service. */
export const listen = async ({
  path,
  requestBody,
  status = 200,
  headers,
  schema,
  body,
}: Baseline): Promise<void> => {
  const app = Fastify({ logger: false })
  const fields = Object.entries({ ...COMMON_FIELDS, ...headers })
  app.route({
    method: requestBody === undefined ? 'GET' : 'POST',
    url: path,
    schema: { response: { [status]: schema }, ...(requestBody !== undefined && { body: requestBody }) },
    handler(_request, reply) {
      for (const [name, value] of fields) reply.header(name, value)
      if (status !== 200) reply.code(status)
      reply.send(body)
    },
  })
  const url = await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
  process.stdout.write(`Server listening at ${url}\n`)
}
