/** Step 3 of the common processing (§1): whatever is thrown becomes the one error body, and one line of the log (§7). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '../src/errors.ts'
import { answerFor, type ErrorAnswer } from '../src/http/error-answers.ts'

/** Without bodies, headers, query or field names: they hold what a client sent. */
const logError = (error: unknown, request: FastifyRequest, status: number): void => {
  const context = {
    method: request.method,
    route: request.routeOptions.url ?? null,
    userId: request.identity?.known.user.id ?? null,
    status,
  }
  if (error instanceof ServiceError) {
    if (error.cause !== undefined) request.log.error({ ...context, err: error.cause }, error.message)
    else request.log[error.quiet ? 'debug' : status >= 500 ? 'warn' : 'info'](context, error.message)
  } else if (status >= 500) request.log.error({ ...context, err: error }, 'unforeseen error')
  else request.log.info(context, 'request refused')
}

/** A browser that follows a link is led on with the message; any other client gets the error and learns the target. */
const sendRedirecting = (
  target: string,
  answer: ErrorAnswer,
  request: FastifyRequest,
  reply: FastifyReply,
): boolean => {
  reply.header('vary', 'accept')
  const location = new URL(target)
  if (request.accepts().type(['json', 'html']) !== 'html') {
    reply.header('location', location.href)
    return false
  }
  location.searchParams.set('error', Object.values(answer.body.errors).flat().join(', '))
  reply.redirect(location.href, 303)
  return true
}

const errorHandler = async (app: FastifyInstance): Promise<void> => {
  const { production } = app.config

  app.setErrorHandler((error, request, reply) => {
    const answer = answerFor(error, production)
    logError(error, request, answer.status)
    reply.headers(answer.headers)
    if (answer.redirectTo !== undefined && sendRedirecting(answer.redirectTo, answer, request, reply)) return
    // As text: no response schema of the route stands between an error and its body.
    reply.code(answer.status).type('application/json; charset=utf-8').send(JSON.stringify(answer.body))
  })
}

export default fp(errorHandler, { name: 'error-handler', dependencies: ['validated-data'] })
