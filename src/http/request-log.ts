/** The loggers of requests: without `LOG_REQUESTS` they are created on the first line, which few requests log. */
import type { IncomingMessage } from 'node:http'
import type { FastifyBaseLogger } from 'fastify'
import type { Logger } from 'pino'
import { traceparentOf } from './trace-context.ts'

type Bindings = Parameters<FastifyBaseLogger['child']>[0]
type Options = Parameters<FastifyBaseLogger['child']>[1]

/** What every line of a request has: its id, and the trace it belongs to. */
export const withTrace = (bindings: Bindings, request: IncomingMessage): Bindings => {
  const traceparent = traceparentOf(request)
  return traceparent === null ? bindings : { ...bindings, traceparent }
}

const LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** `request.log`. A child logger of pino serializes its bindings on creation, so the child is created with the first line. */
class RequestLog implements FastifyBaseLogger {
  declare readonly fatal: FastifyBaseLogger['fatal']
  declare readonly error: FastifyBaseLogger['error']
  declare readonly warn: FastifyBaseLogger['warn']
  declare readonly info: FastifyBaseLogger['info']
  declare readonly debug: FastifyBaseLogger['debug']
  declare readonly trace: FastifyBaseLogger['trace']
  declare readonly silent: FastifyBaseLogger['silent']
  readonly #parent: Logger
  readonly #bindings: Bindings
  readonly #request: IncomingMessage
  readonly #options: Options
  #child: FastifyBaseLogger | null = null

  constructor(parent: Logger, bindings: Bindings, options: Options, request: IncomingMessage) {
    this.#parent = parent
    this.#bindings = bindings
    this.#options = options
    this.#request = request
  }

  static {
    for (const level of LEVELS) {
      Object.defineProperty(RequestLog.prototype, level, {
        value(this: RequestLog, ...line: Parameters<FastifyBaseLogger['info']>) {
          if (this.#mayLog(level)) this.#logger()[level](...line)
        },
      })
    }
  }

  get level(): string {
    return this.#logger().level
  }

  set level(level: string) {
    this.#logger().level = level
  }

  child(bindings: Bindings, options?: Options): FastifyBaseLogger {
    return this.#logger().child(bindings, options)
  }

  /** The parent's level does not count if the route has its own. */
  #mayLog(level: string): boolean {
    return this.#child !== null || this.#options?.level !== undefined || this.#parent.isLevelEnabled(level)
  }

  #logger(): FastifyBaseLogger {
    this.#child ??= this.#parent.child(withTrace(this.#bindings, this.#request), this.#options)
    return this.#child
  }
}

/** A `childLoggerFactory`: a logger for each request that costs almost nothing until it is used. */
export const lazyRequestLogs =
  (logger: Logger) =>
  (_parent: unknown, bindings: Bindings, options: Options, request: IncomingMessage): FastifyBaseLogger =>
    new RequestLog(logger, bindings, options, request)

/** The `childLoggerFactory` with `LOG_REQUESTS`. */
export const requestLog = (
  parent: FastifyBaseLogger,
  bindings: Bindings,
  options: Options,
  request: IncomingMessage,
): FastifyBaseLogger => parent.child(withTrace(bindings, request), options)
