/** HTTP byte by byte: connections that tests write to directly, and lists of responses. */
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { HttpResponse } from './error-response.ts'
import { until } from './until.ts'

/** Milliseconds until a connection without the expected bytes or an end counts as hanging. */
const LIMIT = 20_000

/** Lines of a request with the line ends of HTTP. */
export const lines = (...each: string[]): string => `${each.join('\r\n')}\r\n\r\n`

/** A request of which `head` are the first lines, with a JSON body. */
export const withJson = (head: readonly string[], body: unknown): string => {
  const text = JSON.stringify(body)
  return lines(...head, 'Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`) + text
}

const headersOf = (fields: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    fields.map(field => [
      field.slice(0, field.indexOf(':')).toLowerCase(),
      field.slice(field.indexOf(':') + 1).trim(),
    ]),
  )

/**
 * The final responses in received bytes, in order. Not for HEAD; each has a `Content-Length` or no body.
 * @throws {Error} for anything that is not a complete response.
 */
export const responsesIn = (raw: string): HttpResponse[] => {
  const bytes = Buffer.from(raw, 'latin1')
  const responses: HttpResponse[] = []
  let start = 0
  while (start < bytes.length) {
    const end = bytes.indexOf('\r\n\r\n', start)
    const [line = '', ...fields] = bytes.toString('latin1', start, Math.max(start, end)).split('\r\n')
    const status = /^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1]
    if (end === -1 || status === undefined) throw new Error(`no response: ${bytes.subarray(start)}`)
    const headers = headersOf(fields)
    start = end + 4 + Number(headers['content-length'] ?? 0)
    if (start > bytes.length) throw new Error(`a response that is cut: ${raw}`)
    if (status !== '100') {
      responses.push({ statusCode: Number(status), headers, body: bytes.toString('utf8', end + 4, start) })
    }
  }
  return responses
}

/** A client that writes any bytes and records everything received. */
export class RawConnection {
  readonly socket: Socket
  /** As latin1, one character per byte. */
  received = ''
  /** Whether the server has closed. */
  ended = false

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    this.socket.setEncoding('latin1')
    this.socket.on('data', text => {
      this.received += text
    })
    this.socket.on('error', () => {
      this.ended = true
    })
    this.socket.on('end', () => {
      this.ended = true
      this.socket.end()
    })
  }

  write(bytes: string | Buffer): this {
    this.socket.write(bytes)
    return this
  }

  /** Writes the pieces as separate segments. */
  async writeInPieces(bytes: Buffer, at: readonly number[]): Promise<void> {
    let start = 0
    for (const end of [...at.toSorted((a, b) => a - b), bytes.length]) {
      if (this.socket.writable) this.socket.write(bytes.subarray(start, end))
      start = end
      await sleep(1)
    }
  }

  /** Ends the client's side; it continues to read. */
  halfClose(): this {
    this.socket.end()
    return this
  }

  /** All responses, once the server has closed. */
  async untilClosed(): Promise<HttpResponse[]> {
    await until(
      () => this.ended,
      ended => ended,
      LIMIT,
    )
    this.socket.destroy()
    return responsesIn(this.received)
  }

  /** All responses, once there are so many. The connection stays open. */
  async untilResponses(count: number): Promise<HttpResponse[]> {
    const responses = (): HttpResponse[] => {
      try {
        return responsesIn(this.received)
      } catch {
        return []
      }
    }
    return until(responses, found => found.length >= count || this.ended, LIMIT)
  }
}
