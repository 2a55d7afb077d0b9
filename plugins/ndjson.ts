/** Newline-delimited JSON over HTTP, for routes that declare it: bodies and responses of any length, in batches. */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '#base/errors'
import { checkBodyEncoding } from '#http/body-encoding'
import { disableRequestTimeout } from '#http/connection'
import { logError } from '#http/error-log'
import { LINGER } from '#http/socket-errors'
import { type Line, NDJSON, readLines, toLines, type Validate } from '#http/validation/ndjson'

declare module 'fastify' {
  interface FastifyInstance {
    /** Makes the routes of this scope accept NDJSON only. Their body schema is the schema of one line. */
    acceptNdjson(): void
  }
  interface FastifyRequest {
    /** Logs an error that a response with status 200 reports in its body. */
    logFailure(error: unknown): void
  }
  interface FastifyReply {
    /** Streams batches as fast as the client reads. If one fails, the connection is destroyed. */
    sendNdjson(batches: AsyncIterable<readonly object[]>): FastifyReply
  }
}

/** The chunks of a body, until `stop`, which also ends a body that has stalled. */
async function* chunksOf(body: Readable, stop: AbortSignal): AsyncGenerator<Buffer> {
  // Not destroyed if reading stops early: the connection still has to carry the response.
  const chunks = body.iterator({ destroyOnReturn: false })
  for (;;) {
    const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<Buffer>>()
    const refuse = (): void => reject(new ServiceError('draining'))
    if (stop.aborted) refuse()
    stop.addEventListener('abort', refuse)
    chunks.next().then(resolve, () => reject(new ServiceError('clientClosedRequest', { quiet: true })))
    const next = await promise.finally(() => stop.removeEventListener('abort', refuse))
    if (next.done) return
    yield next.value
  }
}

/** `request.body` of a route that accepts NDJSON. */
class NdjsonBody {
  readonly #body: Readable
  readonly #stop: AbortSignal
  #validate: Validate = () => true

  /** @param stop aborted to stop reading. */
  constructor(body: Readable, stop: AbortSignal) {
    this.#body = body
    this.#stop = stop
  }

  expect(validate: Validate): void {
    this.#validate = validate
  }

  /**
   * The lines, as {@link readLines} yields them.
   * @throws {ServiceError} `clientClosedRequest` if the body breaks off, `draining`
   */
  [Symbol.asyncIterator](): AsyncGenerator<readonly Line<unknown>[]> {
    return readLines(chunksOf(this.#body, this.#stop), this.#validate)
  }
}

/** Discards a body that outlasts its response, for {@link LINGER}: destroyed at once, the response could be lost. */
const discardRest = (request: IncomingMessage): void => {
  if (request.complete) return
  const timer = setTimeout(() => request.destroy(), LINGER)
  request.once('close', () => clearTimeout(timer)).resume()
}

async function* texts(batches: AsyncIterable<readonly object[]>): AsyncGenerator<string> {
  for await (const batch of batches) if (batch.length > 0) yield toLines(batch)
}

const takesNdjson = ({ schema }: RouteOptions): boolean => schema?.consumes?.includes(NDJSON) ?? false

const ndjson = async (app: FastifyInstance): Promise<void> => {
  app.decorate('acceptNdjson', function acceptNdjson(this: FastifyInstance) {
    this.removeAllContentTypeParsers()
    this.addContentTypeParser(NDJSON, (request, payload, done) => {
      checkBodyEncoding(request.headers)
      // The client is authenticated: the scope's gate runs before the body is read.
      disableRequestTimeout(request.raw)
      done(null, new NdjsonBody(payload as Readable, this.drainSignal))
    })
    this.addContentTypeParser('*', (_request, _payload, done) => done(new ServiceError('ndjsonRequired')))
    this.addHook('preValidation', function provideEmptyBody(request, _reply, done) {
      request.body ??= new NdjsonBody(Readable.from([]), this.drainSignal)
      done()
    })
  })

  // Lines are validated as they are read.
  app.addHook('onRoute', route => {
    const compile = app.validatorCompiler
    if (!takesNdjson(route) || compile === undefined) return
    route.validatorCompiler = definition => {
      const validate = compile(definition)
      if (definition.httpPart !== 'body') return validate
      return (body: NdjsonBody) => {
        body.expect(validate as Validate)
        return true
      }
    }
  })

  app.decorateRequest('logFailure', function logFailure(this: FastifyRequest, error) {
    logError(error, this, 200)
  })

  app.decorateReply('sendNdjson', function sendNdjson(this: FastifyReply, batches) {
    this.type(NDJSON)
    if (!this.hasHeader('cache-control')) this.header('cache-control', 'no-store')
    // A HEAD request produces no batches.
    if (this.request.method === 'HEAD') return this.send(Readable.from([]))
    this.raw.once('finish', () => discardRest(this.request.raw))
    return this.send(Readable.from(texts(batches)))
  })
}

export default fp(ndjson, { name: 'ndjson', dependencies: ['json-body', 'validation', 'graceful-shutdown'] })
