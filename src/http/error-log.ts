/** One line of the log for each error, with its request's context (§7.2). */
import { type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import { ADMIN_KEY_HEADER } from '../auth/admin-keys.ts'
import { ServiceError } from '../errors.ts'

/** Whether a caller is known by a token or a key; the key as presented, since public routes look at none. */
const isIdentified = ({ principal, headers, server }: FastifyRequest): boolean => {
  const key = headers[ADMIN_KEY_HEADER]
  return principal !== null || (typeof key === 'string' && server.services.adminKeys.accepts(key))
}

/** Whether it came past its rate limit and its schemas, to the handler. */
const isLimited = ({ validatedData, routeOptions }: FastifyRequest): boolean =>
  'body' in validatedData && routeOptions.config.rateLimit !== undefined

/** What costs an unidentified caller nothing must not fill a disk. */
const levelOfRefusal = (request: FastifyRequest): 'info' | 'debug' =>
  isIdentified(request) || isLimited(request) ? 'info' : 'debug'

/** At `info` once a minute for each address, with the number of those since that were not; else at `debug`. */
const logSampled = (limit: string, context: object, request: FastifyRequest, message: string): void => {
  const suppressed = request.server.logSampler.take(limit, request.clientNetwork)
  if (suppressed === null) request.log.debug({ ...context, limit }, message)
  else request.log.info({ ...context, limit, suppressed }, message)
}

/**
 * Without bodies, headers, query or field names: they hold what a client sent.
 * @param status of the answer: below 400 where the error came after it had begun.
 */
export const logError = (error: unknown, request: FastifyRequest, status: number): void => {
  const context = {
    method: request.method,
    route: request.routeOptions.url ?? null,
    userId: request.principal?.cachedUser.user.id ?? null,
    ip: request.clientAddress,
    status,
  }
  if (error instanceof ServiceError) {
    const { cause, quiet, sampledAs, message } = error
    if (cause !== undefined) request.log.error({ ...context, err: cause }, message)
    else if (quiet) request.log.debug(context, message)
    else if (sampledAs !== undefined) logSampled(sampledAs, context, request, message)
    else request.log[error.status >= 500 ? 'warn' : levelOfRefusal(request)](context, message)
  } else if (status >= 500 || status < 400) request.log.error({ ...context, err: error }, 'unforeseen error')
  else request.log[levelOfRefusal(request)](context, 'request refused')
}

/** Fastify's lines, but for answers that end half-way: those are errors like any other. */
export class ServiceLogController extends LogController {
  override streamError(error: NodeJS.ErrnoException, request: FastifyRequest, reply: FastifyReply): void {
    const isGone = error.code === 'ERR_STREAM_PREMATURE_CLOSE'
    logError(isGone ? new ServiceError('clientGone', { quiet: true }) : error, request, reply.statusCode)
  }
}
