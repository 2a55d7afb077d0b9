import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import type { FastifyBaseLogger, FastifyHttpOptions } from 'fastify'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { BODY_LIMIT } from '../validation/strict-json.ts'
import { clientAddress } from './client-network.ts'
import { ServiceLogController } from './error-log.ts'
import { errorResponseFor } from './error-responses.ts'
import { parseQuery } from './query-string.ts'
import { lazyRequestLogs } from './request-log.ts'
import { respondRaw, respondToClientError } from './socket-errors.ts'

/** Bytes of all header fields together. */
const HEADER_LIMIT = 16_384

/** Milliseconds a client has to send its header fields, and its whole request. */
const HEADERS_TIMEOUT = 5_000
const REQUEST_TIMEOUT = 10_000
/** Node tells of all that are late at one look in one go, at about 5 µs each: of no more than have come in this time. */
const TIMEOUT_CHECK_INTERVAL = 50

/**
 * Milliseconds without a byte either way after which a connection is let go of: it is kept open between two requests, or
 * its client does not read. Above the 60 s after which common load balancers let go of theirs, so that no request of
 * theirs meets a connection that is being closed.
 */
export const IDLE_TIMEOUT = 72_000

/** Request ids that differ between processes whose logs flow together, at the cost of one concatenation. */
const requestIds = (): (() => string) => {
  const instance = randomBytes(4).toString('hex')
  let count = 0
  return () => {
    count += 1
    return `${instance}-${count}`
  }
}

/**
 * With a logger of its own Fastify listens for the end of every response, to log it. Unless just that is asked for, it
 * gets none, and requests get theirs from the factory; {@link buildApp} hands the app the real one.
 */
const loggerOptions = ({ logRequests }: Config, logger: Logger) =>
  logRequests
    ? { loggerInstance: logger as FastifyBaseLogger, logController: new ServiceLogController() }
    : {
        logger: false,
        childLoggerFactory: lazyRequestLogs(logger),
        logController: new ServiceLogController({ disableRequestLogging: true }),
      }

export const serverOptions = (config: Config, logger: Logger) =>
  ({
    ...loggerOptions(config, logger),
    genReqId: requestIds(),
    bodyLimit: BODY_LIMIT,
    requestTimeout: REQUEST_TIMEOUT,
    connectionTimeout: IDLE_TIMEOUT,
    trustProxy: config.trustedProxies.length > 0 && [...config.trustedProxies],
    // No path parameter is too long for its route: the gate answers first, then the parameter's own schema.
    routerOptions: { maxParamLength: HEADER_LIMIT, querystringParser: parseQuery },
    // Fastify's 503 while it closes has another body; requests that still arrive then are served.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    http: {
      maxHeaderSize: HEADER_LIMIT,
      headersTimeout: HEADERS_TIMEOUT,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL,
      // Node's own answer to a missing Host has no body; plugins/http-compliance.ts checks it.
      requireHostHeader: false,
      optimizeEmptyRequests: true,
    },
    clientErrorHandler: (error, socket) => {
      logger.debug({ code: (error as NodeJS.ErrnoException).code }, 'not HTTP, or not in time')
      respondToClientError(error, socket)
    },
    frameworkErrors: (error, request, { raw }) => {
      const { status, body } = errorResponseFor(error, config.isProduction)
      const ip = clientAddress(request.ip)
      request.log.debug({ method: request.method, route: null, userId: null, ip, status }, 'request refused')
      respondRaw(raw, status, body)
    },
  }) satisfies FastifyHttpOptions<Server, FastifyBaseLogger>
