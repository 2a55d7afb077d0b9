/** HTTP rules that Node does not enforce. The server itself is set up by `src/http/server-set-up.ts`. */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '#base/errors'
import { closeAfter, setLatestResponse } from '#http/connection'
import { CheckedFields, fieldError, framingError } from '#http/header-fields'
import { identify } from '#http/identified-response'

/** Maximum number of header fields. Node would drop further ones silently, so its limit is off and the request is rejected. */
const MAX_HEADER_FIELDS = 1_000

/**
 * Removes the type of a missing body. Fastify would wait for the end of such a body, which Node does not emit
 * (`optimizeEmptyRequests`), and reject an empty body on routes without one.
 */
const removeTypeOfEmptyBody = ({ headers }: IncomingMessage): void => {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  if (encoding === undefined && length === '0') delete headers['content-type']
}

const httpCompliance = async (app: FastifyInstance): Promise<void> => {
  // A host with HTTP/2: its requests have no Host and no framing.
  if (app.initialConfig.http2 === true) {
    app.addHook('onRequest', async ({ id }, reply) => {
      identify(reply.header('x-content-type-options', 'nosniff'), id)
    })
    return
  }

  // Runs before every asynchronous hook, so that each request is tracked before the next one of its connection is read.
  app.addHook('onRequest', function checkHeaders({ raw, id }, reply, done) {
    if (!setLatestResponse(raw, reply.raw)) return void reply.hijack()
    reply.header('x-content-type-options', 'nosniff')
    identify(reply, id)
    if (raw.rawHeaders.length > MAX_HEADER_FIELDS * 2) return done(new ServiceError('headersTooLarge'))
    if (raw.headers['content-type'] !== undefined) removeTypeOfEmptyBody(raw)
    const fields = new CheckedFields(raw.rawHeaders)
    // Node drops bytes after an upgrade request (RFC 9110 §7.8), so later requests cannot be parsed.
    if (fields.upgrade) closeAfter(reply.raw)
    const ambiguous = framingError(raw, fields)
    if (ambiguous !== null) {
      closeAfter(reply.raw)
      return done(new ServiceError(ambiguous, { quiet: true }))
    }
    const invalid = fieldError(raw, fields)
    if (invalid !== null) return done(new ServiceError(invalid))
    done()
  })
}

export default fp(httpCompliance, { name: 'http-compliance', dependencies: ['error-handler'] })
