/**
 * CORS: pages of `CORS_ORIGINS` may read responses. Before authentication, so that they can read errors too, and because browsers
 * send preflights without credentials. docs/design.md, "Tokens and sessions" says why this is not @fastify/cors.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import { pathFinder } from '#http/paths'

/** `x-admin-key` is missing on purpose: admin keys do not belong in browsers. */
const REQUEST_HEADERS = 'authorization, content-type, dpop, if-match, traceparent, tracestate, x-request-id'

/** Header fields of the API's responses, except those that pages can always read. */
const RESPONSE_HEADERS =
  'allow, content-disposition, dpop-nonce, etag, link, location, ratelimit, ratelimit-policy, retry-after, www-authenticate, x-request-id'

/** Seconds that browsers keep a preflight: the most that Chromium allows. Actual responses are checked each time. */
const MAX_AGE = 7_200

const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined

const allowOrigin = (reply: FastifyReply, origin: string, mayUseCookie: boolean): void => {
  reply.header('access-control-allow-origin', origin)
  if (mayUseCookie) reply.header('access-control-allow-credentials', 'true')
  // A host's own CORS plugin may have allowed credentials, which it does for every origin.
  else reply.removeHeader('access-control-allow-credentials')
}

const cors = async (app: FastifyInstance): Promise<void> => {
  const { corsOrigins, allowedOrigins } = app.config
  if (corsOrigins.length === 0) return
  /** Whether the pages of each origin may use the cookie. */
  const origins = new Map(corsOrigins.map(origin => [origin, allowedOrigins.includes(origin)]))
  const pathOf = pathFinder(app)

  app.addHook('onRequest', function addCorsHeaders({ raw }, reply, done) {
    // Also for other origins: a cache must not serve them the response without the headers, nor the reverse.
    reply.vary('origin')
    const { origin = '' } = raw.headers
    const mayUseCookie = origins.get(origin)
    if (mayUseCookie === undefined) return done()
    allowOrigin(reply, origin, mayUseCookie)
    if (!isPreflight(raw)) {
      reply.header('access-control-expose-headers', RESPONSE_HEADERS)
      return done()
    }
    // An unknown path has no methods. Browsers then still send GET and POST, and the page can read the 404.
    const methods = pathOf(raw.url ?? '/')?.methods ?? []
    reply
      .code(204)
      .header('access-control-allow-methods', methods.join(', '))
      .header('access-control-allow-headers', REQUEST_HEADERS)
      .header('access-control-max-age', MAX_AGE)
      .send()
  })
}

export default fp(cors, { name: 'cors', dependencies: ['http-compliance'] })
