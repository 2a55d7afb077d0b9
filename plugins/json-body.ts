/** Parses JSON, the only media type of bodies unless a scope accepts NDJSON. Ambiguous JSON is rejected. */
import { isUtf8 } from 'node:buffer'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '../src/errors.ts'
import { checkBodyEncoding } from '../src/http/body-encoding.ts'
import { isLate } from '../src/http/connection.ts'
import { BODY_LIMIT, parseStrictJson } from '../src/validation/strict-json.ts'

const jsonBody = async (app: FastifyInstance): Promise<void> => {
  // Fastify has a parser for text/plain, whose bodies would bypass the schema.
  app.removeAllContentTypeParsers()
  const options = { parseAs: 'buffer', bodyLimit: BODY_LIMIT } as const
  app.addContentTypeParser('application/json', options, (request, body: Buffer, done) => {
    try {
      // The request timed out before its last bytes arrived, and the connection is about to close.
      if (isLate(request.raw))
        throw new ServiceError('requestTimeout', { headers: { connection: 'close' }, quiet: true })
      checkBodyEncoding(request.headers)
      if (body.length === 0) throw new ServiceError('bodyRequired')
      if (!isUtf8(body)) throw new ServiceError('notUtf8')
      done(null, parseStrictJson(body.toString('utf8')))
    } catch (error) {
      done(error as Error)
    }
  })
}

export default fp(jsonBody, { name: 'json-body', dependencies: ['error-handler'] })
