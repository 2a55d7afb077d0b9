/** The state of each connection, so that responses keep their order and nothing follows the last one. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * Milliseconds without traffic in either direction until a connection is closed, between requests as well as when the client
 * does not read. Longer than the 60 s of common load balancers, so that they do not send a request on a connection that the
 * service is closing.
 */
export const IDLE_TIMEOUT = 72_000

/**
 * The private field of Node with the timeout of `Keep-Alive: timeout=…`, which lets clients close a connection before the server
 * does. If a future Node renames it, only that header is missing.
 */
interface KeepAliveResponse extends ServerResponse {
  _keepAliveTimeout?: number
}

export class Connection {
  /** The response to the latest request. Once it is finished, all responses before it have been sent. */
  last: ServerResponse | undefined = undefined
  /** The request that is exempt from the request timeout. */
  untimed: IncomingMessage | undefined = undefined
  /** The request whose body was incomplete when an error occurred: too late, or malformed. */
  late: IncomingMessage | undefined = undefined
  /** Set with the last response of the connection: later requests are not processed (RFC 9112 §9.6). */
  isClosing = false
  /** Set after the first parser error or timeout: later ones are ignored. */
  hasFailed = false
}

/** A property of the socket, because a `WeakMap` lookup costs more. */
const CONNECTION = Symbol('gatehouse.connection')

interface TrackedSocket extends Duplex {
  [CONNECTION]?: Connection | undefined
}

/** Starts tracking a connection, before it receives data. */
export const trackConnection = (socket: TrackedSocket): void => {
  socket[CONNECTION] = new Connection()
  socket.on('close', forget)
}

/** Releases the last request and response of a closed socket, which would otherwise keep them until a major collection. */
function forget(this: TrackedSocket): void {
  this[CONNECTION] = undefined
}

/** @returns `undefined` for sockets that are not connections of the server, as in `app.inject`. */
export const connectionOf = (socket: TrackedSocket | undefined): Connection | undefined =>
  socket?.[CONNECTION]

/**
 * Stores the response as the latest of its connection.
 * @returns false if the connection already has its last response: the request must not be processed.
 */
export const setLatestResponse = (request: IncomingMessage, response: KeepAliveResponse): boolean => {
  const connection = connectionOf(request.socket)
  if (connection === undefined) return true
  if (connection.isClosing) return false
  connection.last = response
  response._keepAliveTimeout = IDLE_TIMEOUT
  return true
}

/** The response to the request whose body a connection has not completely received; `null` between requests. */
export const pendingResponse = (socket: Duplex): ServerResponse | null => {
  const { last } = connectionOf(socket) ?? {}
  return last === undefined || last.req.complete ? null : last
}

/** Makes a response the last one of its connection. Call it before the header fields are sent. */
export const closeAfter = (response: ServerResponse): void => {
  response.shouldKeepAlive = false
  const connection = connectionOf(response.req.socket)
  if (connection !== undefined) connection.isClosing = true
}

/** Whether no later request of the connection has been processed. Such a request would lose its response if this one closed. */
export const isLatest = (response: ServerResponse): boolean => {
  const connection = connectionOf(response.req.socket)
  return connection === undefined || connection.last === response
}

/**
 * Exempts a request from the request timeout; the idle timeout still applies. Only for authenticated clients: a slow request
 * occupies a connection.
 */
export const disableRequestTimeout = (request: IncomingMessage): void => {
  const connection = connectionOf(request.socket)
  if (connection !== undefined) connection.untimed = request
}

/** Whether a request timed out although the rest of its body has arrived since: it must not be processed. */
export const isLate = (request: IncomingMessage): boolean => connectionOf(request.socket)?.late === request
