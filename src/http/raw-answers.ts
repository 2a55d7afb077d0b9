/** Errors in the one format where there is no request and no reply yet: written to the socket itself. */
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { ERRORS, type ErrorName, errorBody } from '../errors.ts'

/** What Node's HTTP parser reports, by its codes; anything else is a request that is not HTTP. */
const BY_CODE: Readonly<Record<string, ErrorName>> = {
  HPE_HEADER_OVERFLOW: 'headersTooLarge',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'bodyTooLarge',
  ERR_HTTP_REQUEST_TIMEOUT: 'requestTimeout',
}

/** Milliseconds a client has to read its answer before the connection is cut: cut at once, the answer would be lost. */
const LINGER = 1_000

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
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

/** For the server's `clientError`. */
export const answerClientError = (error: NodeJS.ErrnoException, socket: Duplex): void => {
  // The client is gone, or is in the middle of an answer that cannot be taken back.
  if (error.code === 'ECONNRESET' || ('_httpMessage' in socket && hasBegun(socket._httpMessage)))
    socket.destroy()
  else answerSocket(socket, BY_CODE[error.code ?? ''] ?? 'badRequest')
}

const hasBegun = (message: unknown): boolean =>
  typeof message === 'object' && message !== null && 'headersSent' in message && message.headersSent === true
