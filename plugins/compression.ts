/**
 * Compresses the responses of routes that declare it, if the client accepts that. Other routes have no hook. docs/design.md, "Contract"
 * says why this is not @fastify/compress.
 */
import { finished, type Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, onSendHookHandler, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { type AcceptedCoding, acceptedCoding } from '#http/content-codings'
import { checkDeclarations } from '#http/route-declarations'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Whether clients get successful responses compressed. GET only, for lists and exports: never with a token, a secret or a hash,
     * whose parts the length of a compressed response can reveal (BREACH). A response with `Cache-Control: no-transform` is exempt.
     */
    compress?: true
  }
}

/** Bytes below which compression does not pay. */
const MIN_COMPRESSED = 1_024

const isStream = (payload: unknown): payload is Readable =>
  typeof payload === 'object' && payload !== null && 'pipe' in payload

/** An ETag is for one content coding. */
const isCompressible = (reply: FastifyReply): boolean =>
  reply.statusCode === 200 &&
  !reply.hasHeader('content-encoding') &&
  !reply.hasHeader('etag') &&
  !/\bno-transform\b/.test(String(reply.getHeader('cache-control')))

/** Ends with the source, and destroys the source when the client disconnects. */
const compressStream = (source: Readable, { codec }: AcceptedCoding, reply: FastifyReply): Readable => {
  const compressed = codec.createStream()
  source.pipe(compressed)
  // Not `pipeline`, which would discard what the source had sent before its error.
  finished(source, { writable: false }, error => {
    if (!error) return
    if (compressed.writableLength === 0) compressed.destroy(error)
    else compressed.flush(() => compressed.destroy(error))
  })
  compressed.once('close', () => source.destroy())
  // Before Fastify sends an error instead of a response that has not begun. Fastify logs it.
  compressed.once('error', () => {
    reply.removeHeader('content-encoding')
    if (!reply.raw.headersSent) reply.raw.removeHeader('content-encoding')
  })
  return compressed
}

const compress: onSendHookHandler<unknown> = (request, reply, payload, done) => {
  if (!isCompressible(reply)) return done(null, payload)
  reply.vary('accept-encoding')
  const coding = acceptedCoding(request.headers['accept-encoding'])
  if (coding === null) return done(null, payload)
  if (isStream(payload)) {
    reply.header('content-encoding', coding.name)
    return done(null, request.method === 'HEAD' ? payload : compressStream(payload, coding, reply))
  }
  const isLarge = typeof payload === 'string' && Buffer.byteLength(payload) >= MIN_COMPRESSED
  if (typeof payload !== 'string' || !(isLarge || coding.isRequired)) return done(null, payload)
  coding.codec.compress(payload, (error, compressed) => {
    if (error !== null) return done(error)
    reply.header('content-encoding', coding.name)
    done(null, compressed)
  })
}

const isRead = ({ method }: RouteOptions): boolean =>
  [method].flat().every(name => name === 'GET' || name === 'HEAD')

const compression = async (app: FastifyInstance): Promise<void> => {
  app.addHook('onRoute', route => {
    // First, so that a HEAD has the length of the compressed response, and durations include the compression.
    if (route.config?.compress === true) route.onSend = [compress, route.onSend ?? []].flat()
  })

  checkDeclarations(app, 'compress', route =>
    route.config?.compress === undefined || isRead(route)
      ? null
      : 'declares compress, but only GET routes may: responses to other methods can contain tokens',
  )
}

export default fp(compression, { name: 'compression', dependencies: ['request-durations', 'sensible'] })
