/** Step 3 of the common processing (§1): turns every error into the error body and one log line (§7). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { Sampler } from '#base/concurrency/sampler'
import { ERRORS, type FieldErrors } from '#base/errors'
import { closeAfter } from '#http/connection'
import { logError, orDisconnected } from '#http/error-log'
import { type ErrorResponse, errorResponseFor, withErrors } from '#http/error-responses'

declare module 'fastify' {
  interface FastifyInstance {
    /** Limits log lines that anonymous clients can cause. */
    readonly logSampler: Sampler
    /** Limits log lines that every request causes during an outage. */
    readonly outageSampler: Sampler
    /**
     * Adds members to the bodies of errors of this scope, for protocols that have their own.
     * @param membersOf returns them for what was raised.
     */
    extendErrors(membersOf: ErrorMembers): void
  }
}

const NO_MEMBERS = {}

type ErrorMembers = (error: unknown, status: number, errors: FieldErrors) => object

/** Milliseconds. */
const OUTAGE_INTERVAL = 1_000

/**
 * Redirects a browser that follows a link, with the message as `error`. Other clients get the error itself, and the target as
 * `Location`.
 * @returns whether the response was sent.
 */
const sendRedirect = (
  target: string,
  response: ErrorResponse,
  request: FastifyRequest,
  reply: FastifyReply,
): boolean => {
  reply.vary('accept')
  if (request.accepts().type(['json', 'html']) !== 'html') {
    reply.header('location', target)
    return false
  }
  reply.redirect(withErrors(target, response.body.errors), 303)
  return true
}

/**
 * If sending an error fails, for example in an `onSend` hook, Fastify serializes the second error by this schema, which hides its
 * message.
 */
const LAST_RESORT = {
  type: 'object',
  properties: {
    errors: {
      type: 'object',
      additionalProperties: true,
      default: { global: [ERRORS.internalError.message] },
    },
  },
}

/**
 * Fastify closes the connection after every body that it could not read. If the body is complete, later requests of the connection
 * are already being processed and would lose their responses.
 */
export const closeIfIncomplete = ({ raw }: FastifyRequest, reply: FastifyReply): void => {
  if (!reply.hasHeader('connection')) return
  if (raw.complete && reply.raw.shouldKeepAlive) reply.removeHeader('connection')
  else closeAfter(reply.raw)
}

const errorHandler = async (app: FastifyInstance): Promise<void> => {
  app.decorate('logSampler', new Sampler(app.services.clock))
  app.decorate('outageSampler', new Sampler(app.services.clock, OUTAGE_INTERVAL))

  app.addHook('onRoute', route => {
    route.schema = {
      ...route.schema,
      response: { '5xx': LAST_RESORT, ...(route.schema?.response as object) },
    }
  })

  const handleErrors = (scope: FastifyInstance, membersOf: ErrorMembers): FastifyInstance =>
    scope.setErrorHandler((raised, request, reply) => {
      const error = orDisconnected(raised, reply)
      const response = errorResponseFor(error, app.config)
      logError(error, request, response.status)
      reply.headers(response.headers)
      closeIfIncomplete(request, reply)
      if (response.redirectTo !== undefined && sendRedirect(response.redirectTo, response, request, reply))
        return
      // As text, so that no response schema of the route applies.
      reply
        .code(response.status)
        .type('application/json; charset=utf-8')
        .send(
          JSON.stringify({ ...membersOf(error, response.status, response.body.errors), ...response.body }),
        )
    })

  handleErrors(app, () => NO_MEMBERS)
  app.decorate('extendErrors', function extendErrors(this: FastifyInstance, membersOf) {
    handleErrors(this, membersOf)
  })
}

export default fp(errorHandler, { name: 'error-handler', dependencies: ['validated-data', 'client-address'] })
