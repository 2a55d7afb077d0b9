/** Sets up the HTTP server of the standalone service: connections are tracked, so that each has one interpretation. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import { trackConnection } from './connection.ts'
import type { RequestIds } from './request-ids.ts'
import { withTrace } from './request-log.ts'
import { expiredConnections, refuseConnect } from './socket-errors.ts'

/** A server with `httpAllowHalfOpen`, without which Node closes a half-closed connection before its pending responses are sent. */
interface HalfOpenServer extends Server {
  httpAllowHalfOpen?: boolean
}

/** Destroys an idle connection in one of the next rounds, unless there is traffic until then. */
const destroyIdle = (socket: Duplex & { bytesRead?: number; bytesWritten?: number }): void => {
  const { bytesRead, bytesWritten } = socket
  expiredConnections.run(() => {
    if (socket.bytesRead === bytesRead && socket.bytesWritten === bytesWritten) socket.destroy()
  })
}

export const setUpServer = (server: HalfOpenServer, logger: Logger, requestIds: RequestIds): void => {
  // plugins/http-compliance.ts has a limit of its own.
  server.maxHeadersCount = 0
  server.httpAllowHalfOpen = true
  server.on('connection', socket => {
    trackConnection(socket)
    // Node caches the address on first access, and cannot read it after a disconnect. Without this, the audit log would lack the
    // address of clients that disconnect at once.
    void socket.remoteAddress
  })
  // `connectionTimeout` applies between requests too. A keep-alive timeout would create a timer per request.
  server.keepAliveTimeout = 0
  // Without a listener, Node destroys all expired connections in one round of the event loop.
  server.on('timeout', destroyIdle)
  // Node's own response has no body: the request is processed as usual, and plugins/http-compliance.ts rejects it.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    server.emit('request', request, response),
  )
  // Without a listener, Node destroys the connection of a CONNECT.
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    const reqId = requestIds.of(request)
    logger.debug(withTrace({ reqId, method: 'CONNECT' }, request), 'CONNECT is not supported')
    refuseConnect(socket, reqId)
  })
}
