/** Fastify's options: limits, timeouts, request ids, loggers, and responses to requests that reach no route. */
import type { Server } from 'node:http'
import { parse } from 'node:querystring'
import type { FastifyBaseLogger, FastifyHttpOptions } from 'fastify'
import type { Logger } from 'pino'
import { IDLE_TIMEOUT, pendingResponse } from './connection.ts'
import { ServiceLogController } from './error-log.ts'
import { errorResponseFor } from './error-responses.ts'
import { idOf, responseClass } from './identified-response.ts'
import { clientAddress } from './ip-address.ts'
import { ticks } from './request-durations.ts'
import type { RequestIds } from './request-ids.ts'
import { lazyRequestLogs, requestLog, withTrace } from './request-log.ts'
import { serializerFactory } from './serializer-compiler.ts'
import { respondRaw, respondToClientError } from './socket-errors.ts'
import { BODY_LIMIT } from './validation/strict-json.ts'
import { buildValidator } from './validator-compiler.ts'

const HEADER_LIMIT = 16_384

/** Milliseconds that a client has to send the header fields, and the whole request. */
const HEADERS_TIMEOUT = 5_000
const REQUEST_TIMEOUT = 10_000
/** Milliseconds. Node reports all requests that timed out since the last check in one round, so rounds must be short. */
const TIMEOUT_CHECK_INTERVAL = 50

/** Replaces a value that cannot be decoded. Every schema rejects it, with the name of the parameter. */
const UNDECODABLE = '\ud800'

/** Percent-encoded text is UTF-8 (RFC 3986 §2.5). */
const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return UNDECODABLE
  }
}

const QUERY_OPTIONS = { maxKeys: 0, decodeURIComponent: decode }

/** The router's parser, which must not throw. Fastify's default passes on undecodable values as they are. */
export const parseQuery = (text: string): Record<string, unknown> =>
  text === '' ? {} : parse(text, '&', '=', QUERY_OPTIONS)

/** The part of the configuration that {@link serverOptions} reads. */
export interface ServerConfig {
  readonly environment: string
  readonly isProduction: boolean
  readonly logRequests: boolean
  /** The value of `Strict-Transport-Security`; `null` for no header. */
  readonly hsts: string | null
  /** Addresses and networks. */
  readonly trustedProxies: readonly string[]
}

/**
 * With a logger of its own, Fastify listens for the end of every response. Without `LOG_REQUESTS` Fastify gets no logger:
 * request loggers come from the factory, and {@link buildApp} sets `app.log`.
 */
const loggerOptions = ({ logRequests }: ServerConfig, logger: Logger) =>
  logRequests
    ? {
        loggerInstance: logger as FastifyBaseLogger,
        childLoggerFactory: requestLog,
        logController: new ServiceLogController(),
      }
    : {
        logger: false,
        childLoggerFactory: lazyRequestLogs(logger),
        logController: new ServiceLogController({ disableRequestLogging: true }),
      }

/** Limits, timeouts and trusted proxies, which suit the server of a host application too. */
export const serverLimits = ({ trustedProxies }: Pick<ServerConfig, 'trustedProxies'>) => ({
  requestTimeout: REQUEST_TIMEOUT,
  connectionTimeout: IDLE_TIMEOUT,
  trustProxy: trustedProxies.length > 0 && [...trustedProxies],
  forceCloseConnections: 'idle' as const,
  http: {
    maxHeaderSize: HEADER_LIMIT,
    headersTimeout: HEADERS_TIMEOUT,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL,
  },
})

export const serverOptions = (config: ServerConfig, logger: Logger, requestIds: RequestIds) => {
  const limits = serverLimits(config)
  return {
    ...limits,
    ...loggerOptions(config, logger),
    genReqId: requestIds.of,
    bodyLimit: BODY_LIMIT,
    // No limit: plugins wait for nothing outside the process, so a slow start means a busy machine. The default of 10 s fails it.
    pluginTimeout: 0,
    schemaController: {
      compilersFactory: { buildSerializer: serializerFactory(config.environment), buildValidator },
    },
    // No path parameter is too long for the router: authentication and the parameter's schema come first.
    routerOptions: { maxParamLength: HEADER_LIMIT, querystringParser: parseQuery },
    // Fastify's own 503 while closing has another body. Requests that still arrive are served.
    return503OnClosing: false,
    http: {
      ...limits.http,
      // Node's own response to a missing Host has no body; plugins/http-compliance.ts checks it instead.
      requireHostHeader: false,
      ServerResponse: responseClass(config.hsts),
      optimizeEmptyRequests: true,
    },
    clientErrorHandler: (error, socket) => {
      const pending = pendingResponse(socket)
      const reqId = (pending && idOf(pending)) ?? requestIds.next()
      const context = { reqId, code: (error as NodeJS.ErrnoException).code }
      logger.debug(pending ? withTrace(context, pending.req) : context, 'malformed HTTP or timeout')
      respondToClientError(error, socket, reqId)
    },
    frameworkErrors: (error, request, { raw }) => {
      const { status, body } = errorResponseFor(error, config)
      const ip = clientAddress(request.ip)
      request.log.debug({ method: request.method, route: null, userId: null, ip, status }, 'request rejected')
      request.server.services.metrics.requestDurations.observeUnknown(request.method, status, ticks())
      respondRaw(raw, status, body, request.id)
    },
  } satisfies FastifyHttpOptions<Server, FastifyBaseLogger>
}
