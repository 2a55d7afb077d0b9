import type { FastifyBaseLogger } from 'fastify'
import type { Logger } from 'pino'

type Bindings = Parameters<FastifyBaseLogger['child']>[0]
type Options = Parameters<FastifyBaseLogger['child']>[1]

const LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/**
 * The logger of one request, `request.log`. Nearly no request logs anything, and a child logger of pino serialises its
 * bindings when it is made: so it is made with the first line.
 */
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
  #made: FastifyBaseLogger | null = null

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

  /** A route can have a level of its own. */
  #mayLog(level: string): boolean {
    return this.#made !== null || this.#options?.level !== undefined || this.#parent.isLevelEnabled(level)
  }

  #logger(): FastifyBaseLogger {
    this.#made ??= this.#parent.child(this.#bindings, this.#options)
    return this.#made
  }
}

/** Gives every request a logger of its own that costs next to nothing until it is used. */
export const lazyRequestLogs =
  (logger: Logger) =>
  (_parent: FastifyBaseLogger, bindings: Bindings, options: Options): FastifyBaseLogger =>
    new RequestLog(logger, bindings, options)
