/** Newline-delimited JSON for routes that declare it: bodies and responses of any length, a batch at a time. */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '../src/errors.ts'
import { checkBodyEncoding } from '../src/http/body-encoding.ts'
import { allowTime } from '../src/http/connection.ts'
import { logError } from '../src/http/error-log.ts'
import { NDJSON, NdjsonBody } from '../src/http/ndjson.ts'
import { LINGER } from '../src/http/socket-errors.ts'
import { toLines, type Validate } from '../src/validation/ndjson.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Has the routes of this scope take NDJSON alone; their schema of the body is that of a line. */
    takeNdjson(): void
  }
  interface FastifyRequest {
    /** Logs what ended an answer of 200 early, where the answer itself says so. */
    logFailure(error: unknown): void
  }
  interface FastifyReply {
    /** Sends batches as they come, as fast as they are read; one that fails cuts the connection. */
    sendNdjson(batches: AsyncIterable<readonly object[]>): FastifyReply
  }
}

/** Whose answer ends before the body can go on sending for a timestamp, unread: cut at once, the answer would be lost. */
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
  app.decorate('takeNdjson', function takeNdjson(this: FastifyInstance) {
    this.removeAllContentTypeParsers()
    this.addContentTypeParser(NDJSON, (request, payload, done) => {
      checkBodyEncoding(request.headers)
      // The gate has let the caller in.
      allowTime(request.raw)
      done(null, new NdjsonBody(payload as Readable, this.drainSignal))
    })
    this.addContentTypeParser('*', (_request, _payload, done) => done(new ServiceError('ndjsonRequired')))
    this.addHook('preValidation', function bodyOfNothing(request, _reply, done) {
      request.body ??= new NdjsonBody(Readable.from([]), this.drainSignal)
      done()
    })
  })

  // The body is validated when it is read.
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
    this.type(NDJSON).header('cache-control', 'no-store')
    // What HEAD would discard is not made.
    if (this.request.method === 'HEAD') return this.send(Readable.from([]))
    this.raw.once('finish', () => discardRest(this.request.raw))
    return this.send(Readable.from(texts(batches)))
  })
}

export default fp(ndjson, { name: 'ndjson', dependencies: ['json-body', 'validation', 'graceful-shutdown'] })
