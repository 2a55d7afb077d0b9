/** Errors in the one format where there is no request and no reply yet: written to the socket itself. */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { ERRORS, type ErrorBody, type ErrorName, errorBody } from '../errors.ts'

const CONTENT_TYPE = 'application/json; charset=utf-8'

/** What Node's HTTP parser reports, by its codes; anything else is a request that is not HTTP. */
const BY_CODE: Readonly<Record<string, ErrorName>> = {
  HPE_HEADER_OVERFLOW: 'headersTooLarge',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'bodyTooLarge',
  ERR_HTTP_REQUEST_TIMEOUT: 'requestTimeout',
}

/** Milliseconds a client has to read its answer before the connection is cut: cut at once, the answer would be lost. */
export const LINGER = 1_000

/** Writes the error and ends the connection. */
export const answerSocket = (socket: Duplex, name: ErrorName): void => {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  // Node has let go of the sockets that come here: an error without a listener would end the process.
  socket.on('error', () => socket.destroy())
  setTimeout(() => socket.destroy(), LINGER).unref()
  const { status, field, message } = ERRORS[name]
  const body = JSON.stringify(errorBody(field, message))
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${CONTENT_TYPE}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

/** The response to the last request of a connection. A property of the socket: a look-up by socket would cost more. */
const LAST_RESPONSE = Symbol('gatehouse.lastResponse')

/** The request of a connection that may take as long as it goes on. */
const UNHURRIED = Symbol('gatehouse.unhurried')

interface AnsweringSocket extends Duplex {
  [LAST_RESPONSE]?: ServerResponse
  [UNHURRIED]?: IncomingMessage
}

/** Remembers what a connection is being answered with, for {@link answerClientError}. */
export const noteResponse = (response: ServerResponse): void => {
  const { socket }: { socket: AnsweringSocket | null } = response
  if (socket !== null) socket[LAST_RESPONSE] = response
}

/** Whether an answer is under way, or is out although its request has not arrived whole: a second one must not follow. */
const isAnswered = ({ [LAST_RESPONSE]: last }: AnsweringSocket): boolean =>
  last?.headersSent === true && !(last.writableFinished && last.req.complete)

/**
 * Lets a request take longer than the server's time for one, as long as there is a byte in its idle time. Only for callers
 * that have passed a gate: whoever may send slowly holds a connection.
 */
export const allowTime = (request: IncomingMessage): void => {
  const socket: AnsweringSocket = request.socket
  socket[UNHURRIED] = request
}

/** Node tells once that a request is late, and looks at that connection again with its next request. */
const mayGoOn = (error: NodeJS.ErrnoException, { [UNHURRIED]: request }: AnsweringSocket): boolean =>
  error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && request?.complete === false

/** For the server's `clientError`. */
export const answerClientError = (error: NodeJS.ErrnoException, socket: Duplex): void => {
  if (mayGoOn(error, socket)) return
  if (error.code === 'ECONNRESET' || isAnswered(socket)) socket.destroy()
  else answerSocket(socket, BY_CODE[error.code ?? ''] ?? 'badRequest')
}

/** Writes an error as the whole answer, past Fastify: for requests that it does not see, or refuses before any hook. */
export const answerRaw = (response: ServerResponse, status: number, body: ErrorBody): void => {
  const text = JSON.stringify(body)
  const headers = {
    'content-type': CONTENT_TYPE,
    'content-length': Buffer.byteLength(text),
    connection: 'close',
  }
  response.writeHead(status, headers).end(text)
}
