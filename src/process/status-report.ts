/** What a load tool checks before it starts: which service this is, and what its settings do to measurements. */

import type { Authenticator } from '#core/auth/authenticator'
import { HASH_PARAMETERS } from '#core/passwords/our-hash'
import type { Storage, UserStore } from '#core/store/store'
import packageJson from '../../package.json' with { type: 'json' }
import type { Config } from './config/config.ts'

export interface StatusReportDeps {
  readonly config: Pick<
    Config,
    'environment' | 'storage' | 'workers' | 'isRateLimited' | 'logRequests' | 'mail'
  >
  readonly authenticator: Pick<Authenticator, 'cacheStatistics'>
  readonly users: Pick<UserStore, 'count' | 'estimate'>
  readonly storage: Pick<Storage, 'statistics'>
}

export type Status = Awaited<ReturnType<StatusReport['read']>>

const transportOf = ({ url }: Config['mail']): 'smtp' | 'files' | 'off' => {
  if (url === null) return 'files'
  return url === 'off' ? 'off' : 'smtp'
}

export class StatusReport {
  readonly #deps: StatusReportDeps
  #count: Promise<number> | null = null

  constructor(deps: StatusReportDeps) {
    this.#deps = deps
  }

  /**
   * @param count whether the number of users is counted, or estimated; else `users` is `null`.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  async read(count: boolean | 'approximate') {
    const { config, authenticator } = this.#deps
    const { memoryCost, timeCost, parallelism } = HASH_PARAMETERS
    const users = count === true ? await this.#users() : null
    const approximateUsers = count === 'approximate' ? await this.#deps.users.estimate({}) : undefined
    const { entries, capacity } = authenticator.cacheStatistics
    return {
      service: 'gatehouse' as const,
      version: packageJson.version,
      engine: config.storage.engine,
      workers: config.workers,
      environment: config.environment,
      /** Milliseconds since the epoch. */
      startedAt: performance.timeOrigin,
      passwordHash: {
        algorithm: 'argon2id' as const,
        memoryKiB: memoryCost,
        iterations: timeCost,
        parallelism,
      },
      rateLimits: config.isRateLimited,
      requestLog: config.logRequests,
      mail: transportOf(config.mail),
      users,
      ...(approximateUsers !== undefined && { approximateUsers }),
      cache: { entries, capacity },
      replica: this.#replica(),
    }
  }

  /** `null` without a replica. */
  #replica() {
    const statistics = this.#deps.storage.statistics()
    if (statistics.engine === 'sqlite' || statistics.replica === null) return null
    const { isInUse, lag, problem } = statistics.replica
    return { inUse: isInUse, lag, problem }
  }

  /** One count at a time, however many clients ask: it takes time in proportion to the users. */
  #users(): Promise<number> {
    this.#count ??= Promise.resolve(this.#deps.users.count({})).finally(() => {
      this.#count = null
    })
    return this.#count
  }
}
