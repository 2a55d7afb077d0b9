/** What a connection is being answered with: every response stands in its place, and nothing stands behind the last one. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

export class Connection {
  /** The response to the last request, whose fate says when everything before it has been sent. */
  last: ServerResponse | undefined = undefined
  /** The request that may take as long as it goes on. */
  unhurried: IncomingMessage | undefined = undefined
  /** The request whose body did not arrive in time, or not whole. */
  late: IncomingMessage | undefined = undefined
  /** Set with the last response of the connection: what arrives behind it is not processed (RFC 9112 §9.6). */
  isClosing = false
  /** Set once the connection has brought something that is no HTTP, or not in time. */
  hasFailed = false
}

/** A property of the socket: a lookup by socket would cost more. */
const CONNECTION = Symbol('gatehouse.connection')

interface TrackedSocket extends Duplex {
  [CONNECTION]?: Connection
}

/** Begins to track a connection, before it has brought anything. */
export const trackConnection = (socket: TrackedSocket): void => {
  socket[CONNECTION] = new Connection()
}

/** @returns `undefined` for what is no connection of the server, as in `app.inject`. */
export const connectionOf = (socket: TrackedSocket | undefined): Connection | undefined =>
  socket?.[CONNECTION]

/**
 * Remembers what a request is answered with.
 * @returns false where the connection has got its last response already: the request must not be processed.
 */
export const noteResponse = (request: IncomingMessage, response: ServerResponse): boolean => {
  const connection = connectionOf(request.socket)
  if (connection === undefined) return true
  if (connection.isClosing) return false
  connection.last = response
  return true
}

/** Makes a response, whose header fields have not been sent, the last one of its connection. */
export const closeAfter = (response: ServerResponse): void => {
  response.shouldKeepAlive = false
  const connection = connectionOf(response.req.socket)
  if (connection !== undefined) connection.isClosing = true
}

/** Whether no later request of the connection has been processed, which would miss its response if this one were the last. */
export const isLatest = (response: ServerResponse): boolean => {
  const connection = connectionOf(response.req.socket)
  return connection === undefined || connection.last === response
}

/**
 * Lets a request take longer than the server's time for one, as long as there is a byte in its idle time. Only for callers
 * that have passed a gate: whoever may send slowly holds a connection.
 */
export const allowTime = (request: IncomingMessage): void => {
  const connection = connectionOf(request.socket)
  if (connection !== undefined) connection.unhurried = request
}

/** Whether a request counts as late although the rest of its body has arrived: it must not be processed. */
export const isLate = (request: IncomingMessage): boolean => connectionOf(request.socket)?.late === request
