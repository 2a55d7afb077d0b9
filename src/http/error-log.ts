/** One line of the log for each error, with its request's context (§7.2). */
import { type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import { ServiceError } from '../errors.ts'

/**
 * Without bodies, headers, query or field names: they hold what a client sent.
 * @param status of the answer: below 400 where the error came after it had begun.
 */
export const logError = (error: unknown, request: FastifyRequest, status: number): void => {
  const context = {
    method: request.method,
    route: request.routeOptions.url ?? null,
    userId: request.identity?.known.user.id ?? null,
    ip: request.ip,
    status,
  }
  if (error instanceof ServiceError) {
    const level = error.quiet ? 'debug' : error.status >= 500 ? 'warn' : 'info'
    if (error.cause !== undefined) request.log.error({ ...context, err: error.cause }, error.message)
    else request.log[level](context, error.message)
  } else if (status >= 500 || status < 400) request.log.error({ ...context, err: error }, 'unforeseen error')
  else request.log.info(context, 'request refused')
}

/** Fastify's lines, but for answers that end half-way: those are errors like any other. */
export class ServiceLogController extends LogController {
  override streamError(error: NodeJS.ErrnoException, request: FastifyRequest, reply: FastifyReply): void {
    const isGone = error.code === 'ERR_STREAM_PREMATURE_CLOSE'
    logError(isGone ? new ServiceError('clientGone', { quiet: true }) : error, request, reply.statusCode)
  }
}
