import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import { type FastifyBaseLogger, type FastifyHttpOptions, LogController } from 'fastify'
import type { Config } from '../config.ts'
import { answerFor } from './error-answers.ts'
import { answerClientError, answerRaw } from './raw-answers.ts'

/** Bytes of a body, and of all header fields together. */
const BODY_LIMIT = 16_384
const HEADER_LIMIT = 16_384

/** Milliseconds a client has to send its header fields, and its whole request. */
const HEADERS_TIMEOUT = 5_000
const REQUEST_TIMEOUT = 10_000
const TIMEOUT_CHECK_INTERVAL = 500

/** Milliseconds without a byte either way: a client that does not read its answers is let go of. */
const CONNECTION_TIMEOUT = 30_000

/** Request ids that differ between processes whose logs flow together, at the cost of one concatenation. */
const requestIds = (): (() => string) => {
  const instance = randomBytes(4).toString('hex')
  let count = 0
  return () => {
    count += 1
    return `${instance}-${count}`
  }
}

export const serverOptions = (config: Config, logger: FastifyBaseLogger) =>
  ({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: !config.logRequests }),
    genReqId: requestIds(),
    bodyLimit: BODY_LIMIT,
    requestTimeout: REQUEST_TIMEOUT,
    connectionTimeout: CONNECTION_TIMEOUT,
    trustProxy: config.trustedProxies.length > 0 && [...config.trustedProxies],
    // No path parameter is too long for its route: the gate answers first, then the parameter's own schema.
    routerOptions: { maxParamLength: HEADER_LIMIT },
    // Fastify's 503 while it closes has another body; requests that still arrive then are served.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    http: {
      maxHeaderSize: HEADER_LIMIT,
      headersTimeout: HEADERS_TIMEOUT,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL,
      // Node's own answer to a missing Host has no body; plugins/http-rules.ts checks it.
      requireHostHeader: false,
    },
    clientErrorHandler: (error, socket) => {
      logger.debug({ code: (error as NodeJS.ErrnoException).code }, 'not HTTP, or not in time')
      answerClientError(error, socket)
    },
    frameworkErrors: (error, request, { raw }) => {
      const { status, body } = answerFor(error, config.production)
      request.log.info({ method: request.method, route: null, userId: null, status }, 'request refused')
      answerRaw(raw, status, body)
    },
  }) satisfies FastifyHttpOptions<Server, FastifyBaseLogger>
