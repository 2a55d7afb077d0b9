/** The loggers of requests without `LOG_REQUESTS`: created on the first line, which few requests log. */
import type { FastifyBaseLogger } from 'fastify'
import type { Logger } from 'pino'

type Bindings = Parameters<FastifyBaseLogger['child']>[0]
type Options = Parameters<FastifyBaseLogger['child']>[1]

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
  readonly #options: Options
  #child: FastifyBaseLogger | null = null

  constructor(parent: Logger, bindings: Bindings, options: Options) {
    this.#parent = parent
    this.#bindings = bindings
    this.#options = options
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
    this.#child ??= this.#parent.child(this.#bindings, this.#options)
    return this.#child
  }
}

/** The `childLoggerFactory`: a logger for each request that costs almost nothing until it is used. */
export const lazyRequestLogs =
  (logger: Logger) =>
  (_parent: FastifyBaseLogger, bindings: Bindings, options: Options): FastifyBaseLogger =>
    new RequestLog(logger, bindings, options)
