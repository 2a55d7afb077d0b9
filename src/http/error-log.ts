/** One log line for each error, with the context of its request (§7.2). */
import { type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import { ServiceError } from '#base/errors'
import { ADMIN_KEY_HEADER } from './admin-key-header.ts'

/** Whether a token or an admin key authenticates the client. Checks the header itself, because public routes ignore the key. */
const isIdentified = ({ principal, headers, server }: FastifyRequest): boolean => {
  const key = headers[ADMIN_KEY_HEADER]
  return principal !== null || (typeof key === 'string' && server.services.adminAuthenticator.recognizes(key))
}

/** Whether the request passed a rate limit and its schemas. */
const isLimited = ({ validatedData, routeOptions }: FastifyRequest): boolean =>
  'body' in validatedData && routeOptions.config.rateLimit !== undefined

/** `debug` for errors that anonymous clients can cause without limit, so that they cannot fill a disk. */
const rejectionLevel = (request: FastifyRequest): 'info' | 'debug' =>
  isIdentified(request) || isLimited(request) ? 'info' : 'debug'

/** Logs at `info` once a minute for each client network, with the number of lines suppressed since; otherwise at `debug`. */
const logSampled = (limit: string, context: object, request: FastifyRequest, message: string): void => {
  const suppressed = request.server.logSampler.take(limit, request.clientNetwork)
  if (suppressed === null) request.log.debug({ ...context, limit }, message)
  else request.log.info({ ...context, limit, suppressed }, message)
}

/**
 * Logs a 503, or a failure of another server, once a second for each kind, with the number of lines suppressed since; otherwise at `debug`.
 * It is a state of the instance that every request meets, and anonymous ones could fill a disk with it.
 */
const logOutage = (
  { code, cause, logged = {}, message }: ServiceError,
  context: object,
  request: FastifyRequest,
): void => {
  const { code: reason = '' } = (cause ?? {}) as { code?: unknown }
  const kind = [reason, ...Object.values(logged)].join(' ')
  const suppressed = request.server.outageSampler.take(code, kind)
  const line = cause === undefined ? context : { ...context, err: cause }
  if (suppressed === null) request.log.debug(line, message)
  else request.log[cause === undefined ? 'warn' : 'error']({ ...line, suppressed }, message)
}

const logServiceError = (error: ServiceError, context: object, request: FastifyRequest): void => {
  const { cause, isOutage, quiet, sampledAs, status, message } = error
  if (isOutage) logOutage(error, context, request)
  else if (cause !== undefined) request.log.error({ ...context, err: cause }, message)
  else if (quiet) request.log.debug(context, message)
  else if (sampledAs !== undefined) logSampled(sampledAs, context, request, message)
  else request.log[status >= 500 ? 'warn' : rejectionLevel(request)](context, message)
}

/**
 * Logs an error, without body, headers, query and field names, because they contain what the client sent.
 * @param status of the response; below 400 if the error occurred after the response had begun.
 */
export const logError = (error: unknown, request: FastifyRequest, status: number): void => {
  const context = {
    method: request.method,
    route: request.routeOptions.url ?? null,
    userId: request.principal?.cachedUser.user.id ?? null,
    ip: request.clientAddress,
    status,
  }
  if (error instanceof ServiceError) logServiceError(error, { ...context, ...error.logged }, request)
  else if (status >= 500 || status < 400) request.log.error({ ...context, err: error }, 'internal error')
  else request.log[rejectionLevel(request)](context, 'request rejected')
}

/** Whether a stream was destroyed before its end, which Fastify does when the client disconnects. */
const isDestroyed = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE'

const disconnected = (): ServiceError => new ServiceError('clientClosedRequest', { quiet: true })

/** The error of a response that has not begun: a client that disconnects before its stream begins is no failure of the service. */
export const orDisconnected = (error: unknown, { raw }: FastifyReply): unknown =>
  raw.destroyed && isDestroyed(error) ? disconnected() : error

/** Fastify's log lines, except for responses that break off: those are logged like every other error. */
export class ServiceLogController extends LogController {
  override streamError(error: NodeJS.ErrnoException, request: FastifyRequest, reply: FastifyReply): void {
    logError(isDestroyed(error) ? disconnected() : error, request, reply.statusCode)
  }
}
