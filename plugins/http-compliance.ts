/** HTTP rules that Node does not enforce, and requests that Node would respond to itself, without an error body. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '../src/errors.ts'
import { closeAfter, noteResponse, trackConnection } from '../src/http/connection.ts'
import { CheckedFields, fieldError, framingError } from '../src/http/header-fields.ts'
import { IDLE_TIMEOUT } from '../src/http/server-options.ts'
import { expiredConnections, refuseConnect } from '../src/http/socket-errors.ts'

/** Maximum number of header fields. Node would drop further ones silently, so its limit is off and the request is rejected. */
const MAX_HEADER_FIELDS = 1_000

/**
 * The private field of Node with the timeout of `Keep-Alive: timeout=…`, which lets clients close a connection before the server
 * does. If a future Node renames it, only that header is missing.
 */
interface KeepAliveResponse extends ServerResponse {
  _keepAliveTimeout?: number
}

/** Without it, Node closes a half-closed connection before its pending responses are sent. */
interface HalfOpenServer extends Server {
  httpAllowHalfOpen?: boolean
}

/**
 * Removes the type of a missing body. Fastify would wait for the end of such a body, which Node does not emit
 * (`optimizeEmptyRequests`), and reject an empty body on routes without one.
 */
const removeTypeOfEmptyBody = ({ headers }: IncomingMessage): void => {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  if (encoding === undefined && length === '0') delete headers['content-type']
}

/** Destroys an idle connection in one of the next rounds, unless there is traffic until then. */
const destroyIdle = (socket: Duplex & { bytesRead?: number; bytesWritten?: number }): void => {
  const { bytesRead, bytesWritten } = socket
  expiredConnections.run(() => {
    if (socket.bytesRead === bytesRead && socket.bytesWritten === bytesWritten) socket.destroy()
  })
}

const httpCompliance = async (app: FastifyInstance): Promise<void> => {
  const server: HalfOpenServer = app.server
  server.maxHeadersCount = 0
  server.httpAllowHalfOpen = true
  server.on('connection', socket => {
    trackConnection(socket)
    // Node caches the address on first access, and cannot read it after a disconnect. Without this, the audit log would lack the
    // address of clients that disconnect at once.
    void socket.remoteAddress
  })
  // `connectionTimeout` applies between requests too. A keep-alive timeout would create a timer per request (4 % of a request to
  // bare Fastify).
  server.keepAliveTimeout = 0
  // Without a listener, Node destroys all expired connections in one round of the event loop.
  server.on('timeout', destroyIdle)
  // Node's own response has no body: the request is processed as usual, and the hook below rejects it.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    server.emit('request', request, response),
  )
  // Without a listener, Node destroys the connection of a CONNECT.
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => refuseConnect(socket))

  // Runs before every asynchronous hook, so that each request is tracked before the next one of its connection is read.
  app.addHook('onRequest', function checkHeaders({ raw }, reply, done) {
    if (!noteResponse(raw, reply.raw)) return void reply.hijack()
    ;(reply.raw as KeepAliveResponse)._keepAliveTimeout = IDLE_TIMEOUT
    reply.header('x-content-type-options', 'nosniff')
    if (raw.rawHeaders.length > MAX_HEADER_FIELDS * 2) return done(new ServiceError('headersTooLarge'))
    if (raw.headers['content-type'] !== undefined) removeTypeOfEmptyBody(raw)
    const fields = new CheckedFields(raw.rawHeaders)
    // Node drops bytes after an upgrade request (RFC 9110 §7.8), so later requests cannot be parsed.
    if (fields.upgrade) closeAfter(reply.raw)
    const ambiguous = framingError(raw, fields)
    if (ambiguous !== null) {
      closeAfter(reply.raw)
      return done(new ServiceError(ambiguous, { quiet: true }))
    }
    const invalid = fieldError(raw, fields)
    if (invalid !== null) return done(new ServiceError(invalid))
    done()
  })
}

export default fp(httpCompliance, { name: 'http-compliance', dependencies: ['error-handler'] })
