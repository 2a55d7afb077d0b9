/** The yardstick: Fastify alone, as its own benchmarks start it, with one route that sends a constant object. */
import Fastify from 'fastify'

export interface Yardstick {
  readonly path: string
  /** 200 unless it says otherwise. */
  readonly status?: number
  /** Header fields beside those that Fastify sends by itself. */
  readonly headers: Readonly<Record<string, string>>
  /** The response schema of the service's own route, so that serialising costs the same. */
  readonly schema: object
  readonly body: unknown
}

/** Listens on the loopback, on the port of the environment, and says so in the words of the service's log. */
export const listen = async ({ path, status = 200, headers, schema, body }: Yardstick): Promise<void> => {
  const app = Fastify({ logger: false })
  const fields = Object.entries({ 'x-content-type-options': 'nosniff', ...headers })
  app.get(path, { schema: { response: { [status]: schema } } }, (_request, reply) => {
    for (const [name, value] of fields) reply.header(name, value)
    if (status !== 200) reply.code(status)
    reply.send(body)
  })
  const url = await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
  process.stdout.write(`Server listening at ${url}\n`)
}
