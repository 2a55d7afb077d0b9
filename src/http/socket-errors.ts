/** Error responses written to the socket itself, for errors that occur before Fastify has a request. */
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { ERRORS, type ErrorBody, type ErrorName, errorBody } from '#base/errors'
import { type Connection, closeAfter, connectionOf } from './connection.ts'
import { STATUS_CODES } from './node-http.ts'
import { REQUEST_ID_HEADER } from './request-ids.ts'

const CONTENT_TYPE = 'application/json; charset=utf-8'

/** Errors of Node's HTTP parser by code; any other is a `badRequest`. */
const BY_CODE: Readonly<Record<string, ErrorName>> = {
  HPE_HEADER_OVERFLOW: 'headersTooLarge',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'bodyTooLarge',
  // The HTTP/2 preface.
  HPE_PAUSED_H2_UPGRADE: 'versionNotSupported',
  ERR_HTTP_REQUEST_TIMEOUT: 'requestTimeout',
}

/** Errors by the parser's reason, where one code has several. A test compares them with the parser. */
const BY_REASON: Readonly<Record<string, ErrorName>> = {
  // A version that is not even well-formed is a `badRequest`.
  'Invalid HTTP version': 'versionNotSupported',
  'Invalid `Transfer-Encoding` header value': 'transferCodingNotSupported',
}

/** The error of Node's `clientError` event; `reason` comes from the parser. */
export interface ClientError extends Error {
  readonly code?: string
  readonly reason?: string
}

const nameOf = ({ code = '', reason = '' }: ClientError): ErrorName =>
  BY_REASON[reason] ?? BY_CODE[code] ?? 'badRequest'

/** Spreads thousands of small tasks that arrive at once over rounds of the event loop. */
class Batches {
  readonly #size: number
  readonly #waiting: (() => void)[] = []
  #scheduled = false

  /** @param size tasks in one round. */
  constructor(size: number) {
    this.#size = size
  }

  /** Queues a task. Tasks run in order and must not throw. */
  run(work: () => void): void {
    this.#waiting.push(work)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0) return
    this.#scheduled = true
    setImmediate(() => {
      for (const work of this.#waiting.splice(0, this.#size)) work()
      this.#scheduled = false
      this.#schedule()
    })
  }
}

/** Milliseconds until the connection is destroyed after the last response. Destroyed at once, the response could be lost. */
export const LINGER = 1_000

/** Connections closed in one round of the event loop: thousands may expire at once. */
const CLOSED_PER_ROUND = 50

export const expiredConnections = new Batches(CLOSED_PER_ROUND)

/** Sends the text, which may be empty, and closes the connection. */
const endSocket = (socket: Duplex, text: string): void => {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  // Node has removed its listeners from some of these sockets: an error without a listener would end the process.
  socket.on('error', () => socket.destroy())
  setTimeout(() => socket.destroy(), LINGER).unref()
  socket.end(text)
}

/** Sends the error and closes the connection. @param id of the request. */
export const respondToSocket = (socket: Duplex, name: ErrorName, id: string): void => {
  const { status, field, message } = ERRORS[name]
  const body = JSON.stringify(errorBody(field, message))
  endSocket(
    socket,
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${CONTENT_TYPE}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nX-Content-Type-Options: nosniff\r\n` +
      `X-Request-Id: ${id}\r\nConnection: close\r\n\r\n${body}`,
  )
}

/** Calls `next` once this response and all before it are sent; never, if the connection closes first. */
const whenSent = (response: ServerResponse, next: () => void): void => {
  if (response.writableFinished) next()
  // Before Node's own listener, which closes the connection if the client has half-closed it.
  else response.prependOnceListener('finish', next)
}

const endAfter = (response: ServerResponse, socket: Duplex): void =>
  whenSent(response, () => endSocket(socket, ''))

/** Calls `next` once all responses before this one are sent: then Node assigns the socket to it. */
const whenNext = (response: ServerResponse, next: () => void): void => {
  if (response.socket !== null) next()
  else response.once('socket', next)
}

/** Sends the error after the responses to complete requests, or instead of the response to an incomplete one. */
const respondInOrder = ({ last, late }: Connection, socket: Duplex, name: ErrorName, id: string): void => {
  const respond = (): void => respondToSocket(socket, name, id)
  if (last === undefined) respond()
  // The body has arrived since: the response of that request already reports the timeout.
  else if (last.req.complete && last.req === late) endAfter(last, socket)
  else if (last.req.complete) whenSent(last, respond)
  else if (!last.headersSent) whenNext(last, () => (last.headersSent ? endAfter(last, socket) : respond()))
  // The incomplete request already has its response: a second one must not follow.
  else if (last.writableEnded) endAfter(last, socket)
  else whenNext(last, () => socket.destroy())
}

/** Whether a timeout is ignored. Node reports it once for each request. */
const isExempt = ({ code }: ClientError, { untimed }: Connection): boolean =>
  code === 'ERR_HTTP_REQUEST_TIMEOUT' && untimed?.complete === false

/** Whether the connection itself has failed, as opposed to a malformed or late request. */
const isConnectionError = ({ code = '' }: ClientError): boolean =>
  !code.startsWith('HPE_') && code !== 'ERR_HTTP_REQUEST_TIMEOUT'

/**
 * Handles the server's `clientError`, which Node emits again for whatever else arrives on the connection.
 * @param id of the incomplete request, or of the one that could not be parsed.
 */
export const respondToClientError = (error: ClientError, socket: Duplex, id: string): void => {
  const connection = connectionOf(socket)
  if (connection === undefined || isConnectionError(error)) {
    socket.destroy()
    return
  }
  if (connection.hasFailed || isExempt(error, connection)) return
  const { isClosing, last } = connection
  // Data after the last request of the connection is ignored, also when the client itself sent `Connection: close`.
  if (error.code === 'HPE_CLOSED_CONNECTION' || (isClosing && last?.req.complete === true)) return
  connection.hasFailed = true
  connection.isClosing = true
  if (last?.req.complete === false) connection.late = last.req
  const respond = (): void => respondInOrder(connection, socket, nameOf(error), id)
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') expiredConnections.run(respond)
  else respond()
}

/** Handles the server's `connect`: Node has detached the socket, and its pending responses too. */
export const refuseConnect = (socket: Duplex, id: string): void => {
  socket.on('error', () => socket.destroy())
  socket.on('timeout', () => socket.destroy())
  const connection = connectionOf(socket)
  if (connection === undefined || connection.last === undefined) {
    respondToSocket(socket, 'badRequest', id)
    return
  }
  const { isClosing, last } = connection
  connection.isClosing = true
  whenSent(last, () => (isClosing ? endSocket(socket, '') : respondToSocket(socket, 'badRequest', id)))
}

/**
 * Sends an error without Fastify, for requests that it does not see or rejects before any hook.
 * @param id of the request; the metrics listener has none.
 */
export const respondRaw = (response: ServerResponse, status: number, body: ErrorBody, id?: string): void => {
  const text = JSON.stringify(body)
  const headers = {
    'content-type': CONTENT_TYPE,
    'content-length': Buffer.byteLength(text),
    'x-content-type-options': 'nosniff',
    ...(id !== undefined && { [REQUEST_ID_HEADER]: id }),
    connection: 'close',
  }
  closeAfter(response)
  response.writeHead(status, headers).end(text)
}
