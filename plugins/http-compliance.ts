/** Rules of HTTP that Node leaves to its user, and requests that Node answers by itself and in its own words. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '../src/errors.ts'
import { closeAfter, noteResponse, trackConnection } from '../src/http/connection.ts'
import { CheckedFields, fieldError, framingError } from '../src/http/header-fields.ts'
import { IDLE_TIMEOUT } from '../src/http/server-options.ts'
import { expiredConnections, refuseConnect } from '../src/http/socket-errors.ts'

/** Past this many fields Node would drop the rest without a word; so it drops none, and the request is refused. */
const MAX_HEADER_FIELDS = 1_000

/**
 * Where Node takes the idle time from that it announces (`Keep-Alive: timeout=…`), so that clients let go of a connection
 * before the server does. Should a Node to come keep it elsewhere, the announcement is missing and nothing else.
 */
interface KeptResponse extends ServerResponse {
  _keepAliveTimeout?: number
}

/** Without it Node ends a connection whose client has sent its end, with responses still to come. */
interface HalfOpenServer extends Server {
  httpAllowHalfOpen?: boolean
}

/**
 * A type says nothing of a body that is not there. Fastify would wait for such a body's end, which Node does not announce
 * (`optimizeEmptyRequests`), and refuse an empty one on routes that take none.
 */
const forgetTypeOfNothing = ({ headers }: IncomingMessage): void => {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  if (encoding === undefined && length === '0') delete headers['content-type']
}

/** Cuts a connection on which nothing has gone either way for its idle time, unless something has when its turn comes. */
const cutIdle = (socket: Duplex & { bytesRead?: number; bytesWritten?: number }): void => {
  const { bytesRead, bytesWritten } = socket
  expiredConnections.run(() => {
    if (socket.bytesRead === bytesRead && socket.bytesWritten === bytesWritten) socket.destroy()
  })
}

const httpRules = async (app: FastifyInstance): Promise<void> => {
  const server: HalfOpenServer = app.server
  server.maxHeadersCount = 0
  server.httpAllowHalfOpen = true
  server.on('connection', socket => {
    trackConnection(socket)
    // Node remembers the address with the first look, and cannot tell it any more once the client is gone: a change by
    // whoever hangs up at once would stand in the audit log without one.
    void socket.remoteAddress
  })
  // The connection's own idle time serves between two requests as well: for another one Node would make a timer with each
  // request (4 % of a request to bare Fastify).
  server.keepAliveTimeout = 0
  // Without a listener Node cuts all that expire at one timestamp in one round of the event loop.
  server.on('timeout', cutIdle)
  // Node's own answer has no body: the request goes its ordinary way, and is refused by the hook below.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    server.emit('request', request, response),
  )
  // Without a listener Node cuts the connection of a CONNECT.
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => refuseConnect(socket))

  // The first hook that can take time is behind this one: every request is noted before the next one of its connection is read.
  app.addHook('onRequest', function checkHeaders({ raw }, reply, done) {
    if (!noteResponse(raw, reply.raw)) return void reply.hijack()
    ;(reply.raw as KeptResponse)._keepAliveTimeout = IDLE_TIMEOUT
    reply.header('x-content-type-options', 'nosniff')
    if (raw.rawHeaders.length > MAX_HEADER_FIELDS * 2) return done(new ServiceError('headersTooLarge'))
    if (raw.headers['content-type'] !== undefined) forgetTypeOfNothing(raw)
    const fields = new CheckedFields(raw.rawHeaders)
    // Node drops bytes behind it (RFC 9110 §7.8), so nothing that follows can be understood.
    if (fields.upgrade) closeAfter(reply.raw)
    const framing = framingError(raw, fields)
    if (framing !== null) {
      closeAfter(reply.raw)
      return done(new ServiceError(framing, { quiet: true }))
    }
    const fault = fieldError(raw, fields)
    if (fault !== null) return done(new ServiceError(fault))
    done()
  })
}

export default fp(httpRules, { name: 'http-compliance', dependencies: ['error-handler'] })
