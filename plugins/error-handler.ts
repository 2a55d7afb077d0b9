/** Step 3 of the common processing (§1): whatever is thrown becomes the one error body, and one line of the log (§7). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { Sampler } from '../src/concurrency/sampler.ts'
import { ERRORS, sentence } from '../src/errors.ts'
import { closeAfter } from '../src/http/connection.ts'
import { logError } from '../src/http/error-log.ts'
import { type ErrorResponse, errorResponseFor } from '../src/http/error-responses.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Thins out log lines that any passer-by can cause. */
    readonly logSampler: Sampler
  }
}

const PLACEHOLDER = 'http://placeholder.invalid'

/** A browser that follows a link is led on with the message; any other client gets the error and learns the target. */
const sendRedirecting = (
  target: string,
  answer: ErrorResponse,
  request: FastifyRequest,
  reply: FastifyReply,
): boolean => {
  reply.header('vary', 'accept')
  if (request.accepts().type(['json', 'html']) !== 'html') {
    reply.header('location', target)
    return false
  }
  // A target may be a path of this service: the origin is there for the parser, and taken off again.
  const location = new URL(target, PLACEHOLDER)
  const sentences = Object.entries(answer.body.errors).flatMap(([field, messages]) =>
    messages.map(message => sentence(field, message)),
  )
  location.searchParams.set('error', sentences.join(', '))
  reply.redirect(location.href.replace(PLACEHOLDER, ''), 303)
  return true
}

/**
 * What Fastify says when sending an error fails in its turn, say in an `onSend` hook: it serialises the second error by
 * this schema, which lets nothing of it through.
 */
const LAST_RESORT = {
  type: 'object',
  properties: {
    errors: { type: 'object', additionalProperties: true, default: { global: [ERRORS.unforeseen.message] } },
  },
}

/**
 * Fastify has the connection closed behind every body that it could not read. Where the body has arrived whole, requests behind
 * it are being processed already, and would miss their responses.
 */
const endUnlessWhole = ({ raw }: FastifyRequest, reply: FastifyReply): void => {
  if (!reply.hasHeader('connection')) return
  if (raw.complete && reply.raw.shouldKeepAlive) reply.removeHeader('connection')
  else closeAfter(reply.raw)
}

const errorHandler = async (app: FastifyInstance): Promise<void> => {
  const { isProduction } = app.config
  app.decorate('logSampler', new Sampler(app.services.clock))

  app.addHook('onRoute', route => {
    route.schema = {
      ...route.schema,
      response: { '5xx': LAST_RESORT, ...(route.schema?.response as object) },
    }
  })

  app.setErrorHandler((error, request, reply) => {
    const answer = errorResponseFor(error, isProduction)
    logError(error, request, answer.status)
    reply.headers(answer.headers)
    endUnlessWhole(request, reply)
    if (answer.redirectTo !== undefined && sendRedirecting(answer.redirectTo, answer, request, reply)) return
    // As text: no response schema of the route stands between an error and its body.
    reply.code(answer.status).type('application/json; charset=utf-8').send(JSON.stringify(answer.body))
  })
}

export default fp(errorHandler, { name: 'error-handler', dependencies: ['validated-data', 'client-address'] })
