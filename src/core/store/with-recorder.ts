/**
 * A store whose operations are recorded, for traces (docs/design.md, "Observability"). Only those that a request can wait for: clean-up,
 * last requests and heartbeats belong to no request.
 */
import type { RateLimit } from '#storage/rate-limit'
import type { Storage } from './store.ts'

export interface OperationRecorder {
  /**
   * Runs an operation. If it returns a promise, the operation ends when that settles.
   * @param name such as `sessions.find`.
   * @returns what `run` returns; throws what it throws.
   */
  record<Result>(name: string, run: () => Result): Result
}

export const withRecorder = (storage: Storage, recorder: OperationRecorder): Storage => {
  /** A store whose functions are recorded, each under its name. */
  const recorded = <Store extends object>(name: string, store: Store): Store =>
    Object.fromEntries(
      Object.entries(store).map(([key, value]) => [
        key,
        typeof value === 'function'
          ? (...args: unknown[]) => recorder.record(`${name}.${key}`, () => value(...args))
          : value,
      ]),
    ) as Store

  const countsInDatabase = storage.statistics().engine === 'postgres'
  return {
    ...storage,
    users: recorded('users', storage.users),
    accounts: recorded('accounts', storage.accounts),
    sessions: recorded('sessions', storage.sessions),
    apiKeys: recorded('apiKeys', storage.apiKeys),
    adminKeys: recorded('adminKeys', storage.adminKeys),
    emailTokens: recorded('emailTokens', storage.emailTokens),
    events: recorded('events', storage.events),
    bulkUsers: recorded('bulkUsers', storage.bulkUsers),
    features: Object.fromEntries(
      Object.entries(storage.features).map(([name, store]) => [name, recorded(name, store)]),
    ),
    openRateLimit: countsInDatabase
      ? options => recorded<RateLimit>('rateLimits', storage.openRateLimit(options))
      : storage.openRateLimit,
    ping: () => recorder.record('ping', storage.ping),
  }
}
