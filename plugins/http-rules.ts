/** Rules of HTTP that Node leaves to its user, and requests that Node answers by itself and in its own words. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '../src/errors.ts'
import { answerSocket, noteResponse } from '../src/http/raw-answers.ts'
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

/** How many Host fields a request has. Node keeps the first of several; a proxy in front may have gone by the last. */
const countHosts = (rawHeaders: readonly string[]): number => {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts
}

/**
 * A type says nothing of a body that is not there. Fastify would wait for such a body's end, which Node does not announce
 * (`optimizeEmptyRequests`), and refuse an empty one on routes that take none.
 */
const forgetTypeOfNothing = ({ headers }: IncomingMessage): void => {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  if (encoding === undefined && length === '0') delete headers['content-type']
}

const httpRules = async (app: FastifyInstance): Promise<void> => {
  app.server.maxHeadersCount = 0
  // Node remembers the address with the first look, and cannot tell it any more once the client is gone: a change by whoever
  // hangs up at once would stand in the audit log without one.
  app.server.on('connection', ({ remoteAddress }) => remoteAddress)
  // The connection's own idle time serves between two requests as well: for another one Node would make a timer with each
  // request (4 % of a request to bare Fastify).
  app.server.keepAliveTimeout = 0
  // Node's own answer has no body: the request goes its ordinary way, and is refused by the hook below.
  app.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    app.server.emit('request', request, response),
  )
  // Without a listener Node cuts the connection of a CONNECT.
  app.server.on('connect', (_request: IncomingMessage, socket: Duplex) => answerSocket(socket, 'badRequest'))

  app.addHook('onRequest', function checkHeaders({ raw }, reply, done) {
    noteResponse(reply.raw)
    ;(reply.raw as KeptResponse)._keepAliveTimeout = IDLE_TIMEOUT
    if (raw.rawHeaders.length > MAX_HEADER_FIELDS * 2) return done(new ServiceError('headersTooLarge'))
    if (raw.headers['content-type'] !== undefined) forgetTypeOfNothing(raw)
    const hosts = countHosts(raw.rawHeaders)
    // RFC 9112 §3.2; HTTP/1.0 knows requests without Host.
    if (hosts > 1 || (hosts === 0 && raw.httpVersionMinor > 0)) return done(new ServiceError('badHost'))
    if (raw.headers.expect !== undefined && raw.headers.expect.toLowerCase() !== '100-continue') {
      return done(new ServiceError('expectationFailed'))
    }
    done()
  })
}

export default fp(httpRules, { name: 'http-rules', dependencies: ['error-handler'] })
