/** Rules of HTTP that Node leaves to its user, and requests that Node answers by itself and in its own words. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ADMIN_KEY_HEADER } from '../src/auth/admin-keys.ts'
import { type ErrorName, ServiceError } from '../src/errors.ts'
import { closeAfter, noteResponse, trackConnection } from '../src/http/connection.ts'
import { hasValidAuthority, isHost } from '../src/http/host.ts'
import { endings, refuseConnect } from '../src/http/raw-answers.ts'
import { IDLE_TIMEOUT } from '../src/http/server-options.ts'

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

const SLASH = '/'.charCodeAt(0)

/** What decides over how a request is read, as it was sent: of most fields Node keeps the first, a proxy may go by another. */
class DecisiveFields {
  hosts = 0
  host = ''
  authorizations = 0
  adminKeys = 0
  transferCoding = false
  upgrade = false

  constructor(rawHeaders: readonly string[]) {
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = rawHeaders[index] as string
      const value = rawHeaders[index + 1] as string
      // The lengths keep nearly all other fields from being compared.
      switch (name.length) {
        case 4:
          if (name.toLowerCase() !== 'host') break
          this.hosts += 1
          this.host = value
          break
        case 7:
          if (name.toLowerCase() === 'upgrade') this.upgrade = true
          break
        case ADMIN_KEY_HEADER.length:
          if (name.toLowerCase() === ADMIN_KEY_HEADER) this.adminKeys += 1
          break
        case 13:
          if (name.toLowerCase() === 'authorization') this.authorizations += 1
          break
        case 17:
          if (name.toLowerCase() === 'transfer-encoding') this.transferCoding = true
          break
      }
    }
  }
}

/** What leaves it open where the request ends, or who would read on: behind it the connection ends. */
const framingFault = (
  { httpVersion, headers }: IncomingMessage,
  { transferCoding }: DecisiveFields,
): ErrorName | null => {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return 'versionNotSupported'
  if (!transferCoding) return null
  // RFC 9112 §6.1: on HTTP/1.0 its framing is faulty.
  if (httpVersion === '1.0') return 'badRequest'
  return headers['transfer-encoding']?.toLowerCase() === 'chunked' ? null : 'transferCodingNotSupported'
}

const fieldFault = (
  { httpVersion, url = '/', headers }: IncomingMessage,
  { hosts, host, authorizations, adminKeys }: DecisiveFields,
): ErrorName | null => {
  // RFC 9112 §3.2; HTTP/1.0 knows requests without Host.
  if (hosts === 0 ? httpVersion !== '1.0' : hosts > 1 || !isHost(host)) return 'badHost'
  if (url.charCodeAt(0) !== SLASH && !hasValidAuthority(url)) return 'badUrl'
  if (authorizations > 1 || adminKeys > 1) return 'duplicateCredentials'
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue') {
    return 'expectationFailed'
  }
  return null
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
  endings.run(() => {
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
  // Without a listener Node cuts all that expire at one moment in one round of the event loop.
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
    const fields = new DecisiveFields(raw.rawHeaders)
    // Node drops bytes behind it (RFC 9110 §7.8), so nothing that follows can be understood.
    if (fields.upgrade) closeAfter(reply.raw)
    const framing = framingFault(raw, fields)
    if (framing !== null) {
      closeAfter(reply.raw)
      return done(new ServiceError(framing, { quiet: true }))
    }
    const fault = fieldFault(raw, fields)
    if (fault !== null) return done(new ServiceError(fault))
    done()
  })
}

export default fp(httpRules, { name: 'http-rules', dependencies: ['error-handler'] })
