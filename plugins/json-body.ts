/** Parses JSON, the only media type of bodies unless a scope accepts forms or NDJSON. Ambiguous bodies are rejected. */
import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '#base/errors'
import { checkBodyEncoding } from '#http/body-encoding'
import { isLate } from '#http/connection'
import { FORM_TYPE, parseForm } from '#http/validation/form'
import { BODY_LIMIT, parseStrictJson } from '#http/validation/strict-json'

declare module 'fastify' {
  interface FastifyInstance {
    /** Accepts forms (`application/x-www-form-urlencoded`) besides JSON, on all routes of this instance. The last call counts. */
    acceptForms(options?: FormOptions): void
  }
}

export interface FormOptions {
  /** Whether JSON is not accepted: for protocols that have forms alone. */
  readonly isOnly?: boolean
  /** Names of fields that a form may have several times: their values are lists. */
  readonly repeated?: readonly string[]
}

const JSON_TYPE = 'application/json'

/** A parser of Fastify for bodies of text. @param parse throws a {@link ServiceError}. */
const parserOf =
  (parse: (text: string) => unknown) =>
  (request: FastifyRequest, body: Buffer, done: (error: Error | null, body?: unknown) => void): void => {
    try {
      // The request timed out before its last bytes arrived, and the connection is about to close.
      if (isLate(request.raw))
        throw new ServiceError('requestTimeout', { headers: { connection: 'close' }, quiet: true })
      checkBodyEncoding(request.headers)
      if (body.length === 0) throw new ServiceError('bodyRequired')
      if (!isUtf8(body)) throw new ServiceError('notUtf8')
      const value = parse(body.toString('utf8'))
      // Fastify validates an absent body as null. So where a body is optional, a schema cannot reject this one.
      if (value === null) throw new ServiceError('bodyRequired')
      done(null, value)
    } catch (error) {
      done(error as Error)
    }
  }

const jsonBody = async (app: FastifyInstance): Promise<void> => {
  // Fastify has a parser for text/plain, whose bodies would bypass the schema.
  app.removeAllContentTypeParsers()
  const options = { parseAs: 'buffer', bodyLimit: BODY_LIMIT } as const
  app.addContentTypeParser(JSON_TYPE, options, parserOf(parseStrictJson))
  app.decorate('acceptForms', function acceptForms(this: FastifyInstance, { isOnly, repeated } = {}) {
    // For the OpenAPI document.
    this.addHook('onRoute', route => {
      route.schema = { consumes: isOnly ? [FORM_TYPE] : [JSON_TYPE, FORM_TYPE], ...route.schema }
    })
    this.removeContentTypeParser([FORM_TYPE, '*', ...(isOnly ? [JSON_TYPE] : [])])
    this.addContentTypeParser(
      FORM_TYPE,
      options,
      parserOf(text => parseForm(text, repeated)),
    )
    const other = isOnly ? 'formRequired' : 'formOrJsonRequired'
    this.addContentTypeParser('*', (_request, _payload, done) => done(new ServiceError(other)))
  })
}

export default fp(jsonBody, { name: 'json-body', dependencies: ['error-handler'] })
