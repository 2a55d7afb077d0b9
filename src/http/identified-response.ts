/** Responses carry the id of their request. Header fields that never change skip Node's validation. */
import type { IncomingMessage } from 'node:http'
import type { FastifyReply } from 'fastify'
import { ServerResponse, validateHeaderValue } from './node-http.ts'
import { REQUEST_ID_HEADER } from './request-ids.ts'

/** The private method of Node that serializes the header fields. */
const { _storeHeader: storeHeader } = ServerResponse.prototype as unknown as {
  _storeHeader(this: ServerResponse, statusLine: string, headers: unknown): void
}

type Fields = Readonly<Record<string, unknown>>

const CONTENT_LENGTH = 'content-length'

/** Fields that nearly all responses send with the same value, and that mean nothing to Node: the last value and line of each. */
const lastLines = new Map(
  [
    'access-control-allow-credentials',
    'access-control-allow-origin',
    'access-control-expose-headers',
    'cache-control',
    'content-type',
    'etag',
    'vary',
    'www-authenticate',
    'x-content-type-options',
  ].map(name => [name, { value: '', text: `${name}: \r\n` }]),
)

/** @returns `null` for other fields. @throws {TypeError} as Node, if the value is not valid. */
const lineOf = (name: string, value: unknown): string | null => {
  const line = lastLines.get(name)
  if (line === undefined || typeof value !== 'string') return null
  if (line.value !== value) {
    validateHeaderValue(name, value)
    line.value = value
    line.text = `${name}: ${value}\r\n`
  }
  return line.text
}

/**
 * The lines of all fields but `Content-Length`; `null` if there is another field than those of {@link lineOf}. Node checks the name
 * and the value of each field with a regular expression: 9 % of the cycles of `GET /account`.
 */
const linesOf = (fields: Fields): string | null => {
  let lines = ''
  for (const name in fields) {
    const value = fields[name]
    const line = name === CONTENT_LENGTH && typeof value === 'string' ? '' : lineOf(name, value)
    if (line === null) return null
    lines += line
  }
  return lines
}

/**
 * The response class of the standalone service. It puts the id behind the status line: as a header of Fastify, which Node checks
 * with regular expressions, it would cost 3 % of a request instead of less than 0.5 %. If a future Node renames the method, only that
 * header is missing.
 */
class IdentifiedResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Private fields of Node. */
  declare protected _contentLength: number | null
  declare protected readonly _hasBody: boolean
  requestId = ''

  /** Header lines of every response. */
  protected get constantLines(): string {
    return ''
  }

  protected _storeHeader(statusLine: string, headers: unknown): void {
    const { requestId } = this
    const first = statusLine + this.constantLines
    const start = requestId === '' ? first : `${first}X-Request-Id: ${requestId}\r\n`
    const fields = typeof headers === 'object' ? (headers as Fields | null) : null
    const lines = fields === null ? null : linesOf(fields)
    if (fields === null || lines === null) storeHeader.call(this, start, headers)
    else storeHeader.call(this, start + lines, this.#rest(fields[CONTENT_LENGTH]))
  }

  /** The fields that are left to Node. Of a body Node adds the length itself, unchecked. */
  #rest(length: unknown): Fields | null {
    if (length === undefined) return null
    // For HEAD, and for HTTP/1.0, where the field also decides whether the connection stays open.
    if (!(this._hasBody && this.useChunkedEncodingByDefault)) return { [CONTENT_LENGTH]: length }
    this._contentLength = Number(length)
    return null
  }
}

/**
 * @param hsts the value of `Strict-Transport-Security` in every response; `null` for none.
 * @returns the response class of a server. The header is a part of each status line, so it costs no hook and no check.
 */
export const responseClass = (hsts: string | null): typeof ServerResponse => {
  if (hsts === null) return IdentifiedResponse
  const lines = `Strict-Transport-Security: ${hsts}\r\n`
  return class<Request extends IncomingMessage = IncomingMessage> extends IdentifiedResponse<Request> {
    protected override get constantLines(): string {
      return lines
    }
  }
}

/** Whether a response carries an id. Not by `instanceof`, which looks through the prototypes of each response. */
const isIdentified = (response: object): response is IdentifiedResponse => 'requestId' in response

/** Gives the response the id of its request, which is a valid header value. */
export const identify = (reply: FastifyReply, id: string): void => {
  const { raw } = reply
  if (isIdentified(raw)) raw.requestId = id
  // In a host application, and with `app.inject`.
  else reply.header(REQUEST_ID_HEADER, id)
}

/** The id that {@link identify} has given; `null` if there is none. */
export const idOf = (response: ServerResponse): string | null =>
  isIdentified(response) && response.requestId !== '' ? response.requestId : null
