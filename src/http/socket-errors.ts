/** Errors in the one format where there is no request and no reply yet: written to the socket itself. */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { Batches } from '../concurrency/batches.ts'
import { ERRORS, type ErrorBody, type ErrorName, errorBody } from '../errors.ts'
import { type Connection, closeAfter, connectionOf } from './connection.ts'

const CONTENT_TYPE = 'application/json; charset=utf-8'

/** What Node's HTTP parser reports, by its codes; anything else is a request that is not HTTP. */
const BY_CODE: Readonly<Record<string, ErrorName>> = {
  HPE_HEADER_OVERFLOW: 'headersTooLarge',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'bodyTooLarge',
  // The preface of HTTP/2.
  HPE_PAUSED_H2_UPGRADE: 'versionNotSupported',
  ERR_HTTP_REQUEST_TIMEOUT: 'requestTimeout',
}

/** The same by the parser's reasons, where one code has several; a test holds them against the parser. */
const BY_REASON: Readonly<Record<string, ErrorName>> = {
  // As opposed to one that is no version at all.
  'Invalid HTTP version': 'versionNotSupported',
  'Invalid `Transfer-Encoding` header value': 'transferCodingNotSupported',
}

/** What Node passes to `clientError`: `reason` is the parser's. */
export interface ClientError extends Error {
  readonly code?: string
  readonly reason?: string
}

const nameOf = ({ code = '', reason = '' }: ClientError): ErrorName =>
  BY_REASON[reason] ?? BY_CODE[code] ?? 'badRequest'

/** Milliseconds a client has to read its answer before the connection is cut: cut at once, the answer would be lost. */
export const LINGER = 1_000

/** Connections that are ended in one round of the event loop: thousands may expire at once, at up to 100 µs each. */
const ENDED_AT_ONCE = 50

/** What ends connections whose time is over. */
export const endings = new Batches(ENDED_AT_ONCE)

/** Ends the connection, with a last word or none. */
const endSocket = (socket: Duplex, text: string): void => {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  // Node has let go of some sockets that come here: an error without a listener would end the process.
  socket.on('error', () => socket.destroy())
  setTimeout(() => socket.destroy(), LINGER).unref()
  socket.end(text)
}

/** Writes the error and ends the connection. */
export const respondToSocket = (socket: Duplex, name: ErrorName): void => {
  const { status, field, message } = ERRORS[name]
  const body = JSON.stringify(errorBody(field, message))
  endSocket(
    socket,
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${CONTENT_TYPE}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n${body}`,
  )
}

/** When everything up to this response has been sent; never, if the connection ends before. */
const whenSent = (response: ServerResponse, next: () => void): void => {
  if (response.writableFinished) next()
  // Ahead of Node, which ends the connection then if the client has ended its side.
  else response.prependOnceListener('finish', next)
}

const endAfter = (response: ServerResponse, socket: Duplex): void =>
  whenSent(response, () => endSocket(socket, ''))

/** When everything before this response has been sent. */
const whenFirst = (response: ServerResponse, next: () => void): void => {
  if (response.socket !== null) next()
  else response.once('socket', next)
}

/** Answers what is wrong behind whole requests, or in the last one, in its turn: whole requests have their own responses. */
const answerInTurn = ({ last, late }: Connection, socket: Duplex, name: ErrorName): void => {
  const answer = (): void => respondToSocket(socket, name)
  if (last === undefined) answer()
  // Its body has arrived since: its own response says that it was late.
  else if (last.req.complete && last.req === late) endAfter(last, socket)
  else if (last.req.complete) whenSent(last, answer)
  else if (!last.headersSent) whenFirst(last, () => (last.headersSent ? endAfter(last, socket) : answer()))
  // A request that has not arrived whole has its response already: a second one must not follow.
  else if (last.writableEnded) endAfter(last, socket)
  else whenFirst(last, () => socket.destroy())
}

/** Node tells once that a request is late, and looks at that connection again with its next request. */
const mayGoOn = ({ code }: ClientError, { unhurried }: Connection): boolean =>
  code === 'ERR_HTTP_REQUEST_TIMEOUT' && unhurried?.complete === false

/** Whether it is the connection that has failed, and not what it has brought. */
const isOfConnection = ({ code = '' }: ClientError): boolean =>
  !code.startsWith('HPE_') && code !== 'ERR_HTTP_REQUEST_TIMEOUT'

/** For the server's `clientError`. Node emits it again with whatever else a connection brings. */
export const respondToClientError = (error: ClientError, socket: Duplex): void => {
  const connection = connectionOf(socket)
  if (connection === undefined || isOfConnection(error)) {
    socket.destroy()
    return
  }
  if (connection.hasFailed || mayGoOn(error, connection)) return
  const { isClosing, last } = connection
  // Behind the last request of the connection, also when it was the client that said so: its response is the last word.
  if (error.code === 'HPE_CLOSED_CONNECTION' || (isClosing && last?.req.complete === true)) return
  connection.hasFailed = true
  connection.isClosing = true
  if (last?.req.complete === false) connection.late = last.req
  const answer = (): void => answerInTurn(connection, socket, nameOf(error))
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') endings.run(answer)
  else answer()
}

/** For the server's `connect`: Node has let go of the socket, and of what is to be sent on it before. */
export const refuseConnect = (socket: Duplex): void => {
  socket.on('error', () => socket.destroy())
  socket.on('timeout', () => socket.destroy())
  const connection = connectionOf(socket)
  if (connection === undefined || connection.last === undefined) {
    respondToSocket(socket, 'badRequest')
    return
  }
  const { isClosing, last } = connection
  connection.isClosing = true
  whenSent(last, () => (isClosing ? endSocket(socket, '') : respondToSocket(socket, 'badRequest')))
}

/** Writes an error as the whole answer, past Fastify: for requests that it does not see, or refuses before any hook. */
export const respondRaw = (response: ServerResponse, status: number, body: ErrorBody): void => {
  const text = JSON.stringify(body)
  const headers = {
    'content-type': CONTENT_TYPE,
    'content-length': Buffer.byteLength(text),
    'x-content-type-options': 'nosniff',
    connection: 'close',
  }
  closeAfter(response)
  response.writeHead(status, headers).end(text)
}
