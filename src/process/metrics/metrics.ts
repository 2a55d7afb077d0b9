/**
 * The metrics of one service (docs/design.md, "Observability"). Services count for themselves, in plain numbers; only here they get names
 * and labels, when they are read.
 */

import { Counters } from '#base/statistics/counters'
import type { FeatureMetrics } from '#base/statistics/feature-metrics'
import { DURATIONS, Histogram, type HistogramValue } from '#base/statistics/histogram'
import type { MetricDeclarations } from '#base/statistics/metric'
import {
  type KeptValue,
  keptValues,
  type Sample,
  type Snapshot,
  sample,
  samplesBy,
} from '#base/statistics/snapshot'
import { toText } from '#base/statistics/text-format'
import type { SignIns } from '#core/accounts/sign-ins'
import type { SignUps } from '#core/accounts/sign-ups'
import type { Authenticator } from '#core/auth/authenticator'
import type { LastRequests } from '#core/auth/last-requests'
import type { DeliveryStatistics } from '#core/mail/delivery-queue'
import type { BreachedPasswords } from '#core/passwords/breached-passwords'
import type { PasswordHasher } from '#core/passwords/hasher'
import type { ThrottleEvents } from '#core/rate-limits/throttle-events'
import type { Storage } from '#core/store/store'
import type { Consumers } from '#feature/consumers/consumers'
import type { Jobs } from '#feature/jobs/jobs'
import { RequestDurations } from '#http/request-durations'
import type { LeaseStatistics, StorageStatistics } from '#storage/statistics'
import packageJson from '../../../package.json' with { type: 'json' }
import type { MetricName } from './declarations.ts'
import { heapMetrics, NO_PROCESS_METRICS, processMetrics } from './process-metrics.ts'
import type { WorkerChannel } from './worker-metrics.ts'

/** Milliseconds that a collection waits for the store. */
const STORE_LIMIT = 1_000

/** Milliseconds between two measurements of the delay of the event loop. */
const DELAY_INTERVAL = 50

/** How long a request that arrives at any time waits until the event loop is free. */
class EventLoopDelay {
  readonly #delays = new Histogram(DURATIONS)
  readonly #timer: NodeJS.Timeout
  #dueAt = performance.now() + DELAY_INTERVAL

  constructor() {
    this.#timer = setInterval(() => this.#measure(), DELAY_INTERVAL).unref()
  }

  get value(): HistogramValue {
    return this.#delays.value
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #measure(): void {
    const now = performance.now()
    // Timers have whole milliseconds, so one may fire up to a millisecond early.
    this.#delays.observe(Math.max(0, now - this.#dueAt) / 1_000)
    this.#dueAt = now + DELAY_INTERVAL
  }
}

export interface MetricsDeps {
  readonly signIns: Pick<SignIns, 'outcomes'>
  readonly signUps: Pick<SignUps, 'outcomes'>
  readonly declarations: MetricDeclarations
  readonly featureMetrics: Pick<FeatureMetrics, 'values'>
  /** The names of the limits per address and per user. */
  readonly limits: readonly string[]
  readonly throttleEvents: Pick<ThrottleEvents, 'statistics'>
  readonly hasher: Pick<PasswordHasher, 'statistics'>
  readonly breachedPasswords: Pick<BreachedPasswords, 'outcomes'>
  readonly authenticator: Pick<Authenticator, 'cacheStatistics'>
  readonly lastRequests: Pick<LastRequests, 'statistics'>
  readonly storage: Pick<Storage, 'statistics' | 'ping'>
  readonly jobs: Pick<Jobs, 'statistics'>
  readonly consumers: Pick<Consumers, 'statistics'>
  /** `null` if no mails are sent. */
  readonly mailer: { readonly statistics: DeliveryStatistics } | null
  /** In a worker: leads to the process that adds up the metrics of all workers. */
  readonly workerChannel: WorkerChannel | undefined
}

/** Every metric but those of the process that starts the workers: a metric without values does not compile. */
type ServiceSnapshot = {
  readonly [Name in Exclude<
    MetricName,
    'gatehouse_workers' | 'gatehouse_worker_timeouts_total'
  >]: readonly Sample[]
}

const signInSamples = (outcomes: SignIns['outcomes']): readonly Sample[] =>
  Object.entries(outcomes).flatMap(([method, { values }]) =>
    Object.entries(values).map(([outcome, value]) => sample(value, { method, outcome })),
  )

const leaseMetrics = (leases: LeaseStatistics | null) => ({
  gatehouse_revocation_wait_seconds: leases ? [sample(leases.waits)] : [],
  gatehouse_caching_processes: leases ? [sample(leases.processes)] : [],
  gatehouse_lapsed_leases_total: leases ? [sample(leases.lapses)] : [],
})

const storeMetrics = (statistics: StorageStatistics) => {
  const writer = statistics.engine === 'sqlite' ? statistics.writer : null
  const { pool, feed, leases, replica } =
    statistics.engine === 'postgres' ? statistics : { pool: null, feed: null, leases: null, replica: null }
  const lag = feed?.lag ?? null
  const replicaLag = replica?.lag ?? null
  return {
    gatehouse_sqlite_writer_waiting: writer ? [sample(writer.waiting)] : [],
    gatehouse_sqlite_writer_batch_size: writer ? [sample(writer.batchSizes)] : [],
    gatehouse_sqlite_writer_commit_seconds: writer ? [sample(writer.commits)] : [],
    gatehouse_postgres_pool_in_use: pool ? [sample(pool.inUse)] : [],
    gatehouse_postgres_pool_waiting: pool ? [sample(pool.waiting)] : [],
    gatehouse_replica_in_use: replica ? [sample(Number(replica.isInUse))] : [],
    gatehouse_replica_lag_seconds: replicaLag === null ? [] : [sample(replicaLag)],
    gatehouse_replica_reads_total: replica ? samplesBy('server', replica.reads) : [],
    gatehouse_invalidation_feed_connected: feed ? [sample(Number(feed.isConnected))] : [],
    gatehouse_invalidation_lag_seconds: lag === null ? [] : [sample(lag)],
    gatehouse_invalidation_interruptions_total: feed ? [sample(feed.interruptions)] : [],
    ...leaseMetrics(leases),
  } satisfies Snapshot
}

const hashingMetrics = (lanes: PasswordHasher['statistics'] = {}) => {
  const byLane = <Key extends 'running' | 'waiting' | 'waits' | 'rejected'>(key: Key): Sample[] =>
    Object.entries(lanes).map(([lane, statistics]) => sample(statistics[key], { lane }))
  return {
    gatehouse_hashing_running: byLane('running'),
    gatehouse_hashing_waiting: byLane('waiting'),
    gatehouse_hashing_wait_seconds: byLane('waits'),
    gatehouse_hashing_rejected_total: byLane('rejected'),
  } satisfies Snapshot
}

const mailMetrics = (mails: DeliveryStatistics | undefined) => ({
  gatehouse_mails_sent_total: mails ? [sample(mails.sent)] : [],
  gatehouse_mails_failed_total: mails ? [sample(mails.failed)] : [],
  gatehouse_mail_retries_total: mails ? [sample(mails.retries)] : [],
  gatehouse_mails_waiting: mails ? [sample(mails.waiting)] : [],
})

const featureSamples = (metrics: FeatureMetrics['values']): Snapshot =>
  Object.fromEntries(
    Object.entries(metrics).map(([name, values]) => [
      name,
      values.map(({ value, labels }) => sample(value, labels)),
    ]),
  )

export class Metrics {
  readonly requestDurations = new RequestDurations()
  /** Requests that were rejected by a limit per address, or per user. */
  readonly rateLimited: Counters<string>
  readonly #deps: MetricsDeps
  readonly #eventLoopDelay = new EventLoopDelay()
  #ping: Promise<boolean> | null = null

  constructor(deps: MetricsDeps) {
    this.#deps = deps
    this.rateLimited = new Counters(deps.limits)
    deps.workerChannel?.onCollect(() => this.collect())
  }

  /** The text for Prometheus; in a worker, of all workers. @throws {ServiceError} `overloaded` */
  async text(): Promise<string> {
    const { workerChannel, declarations } = this.#deps
    return workerChannel === undefined ? toText(declarations, await this.collect()) : workerChannel.text()
  }

  async collect(): Promise<Snapshot> {
    const { signIns, signUps, throttleEvents, hasher, breachedPasswords } = this.#deps
    const { authenticator, lastRequests, storage, mailer, jobs, consumers } = this.#deps
    const isUp = await this.#isStoreUp()
    const cache = authenticator.cacheStatistics
    const { rows, failures, durations } = lastRequests.statistics
    const throttled = throttleEvents.statistics
    const store = storage.statistics()
    const build = { version: packageJson.version, engine: store.engine, node: process.versions.node }
    const ofCore = {
      http_server_request_duration_seconds: this.requestDurations.samples,
      gatehouse_sign_ins_total: signInSamples(signIns.outcomes),
      gatehouse_sign_ups_total: samplesBy('outcome', signUps.outcomes.values),
      gatehouse_breached_password_checks_total: samplesBy('outcome', breachedPasswords.outcomes.values),
      gatehouse_rate_limited_requests_total: samplesBy('limit', this.rateLimited.values),
      gatehouse_throttled_password_attempts_total: [sample(throttled.attempts)],
      gatehouse_throttled_accounts_total: [sample(throttled.accounts)],
      ...hashingMetrics(hasher.statistics),
      gatehouse_token_cache_entries: [sample(cache.entries)],
      gatehouse_token_cache_hits_total: [sample(cache.hits)],
      gatehouse_token_cache_misses_total: [sample(cache.misses)],
      gatehouse_token_cache_evictions_total: [sample(cache.evictions)],
      gatehouse_last_request_flush_seconds: [sample(durations)],
      gatehouse_last_request_flush_rows_total: [sample(rows)],
      gatehouse_last_request_flush_failures_total: [sample(failures)],
      gatehouse_store_up: [sample(Number(isUp))],
      ...storeMetrics(store),
      ...mailMetrics(mailer?.statistics),
      gatehouse_job_runs_total: jobs.statistics.flatMap(({ job, succeeded, failed }) => [
        sample(succeeded, { job, outcome: 'succeeded' }),
        sample(failed, { job, outcome: 'failed' }),
      ]),
      gatehouse_consumer_events_total: consumers.statistics.flatMap(({ consumer, handled, failed }) => [
        sample(handled, { consumer, outcome: 'handled' }),
        sample(failed, { consumer, outcome: 'failed' }),
      ]),
      gatehouse_consumer_waiting_events: consumers.statistics.map(({ consumer, waiting }) =>
        sample(waiting, { consumer }),
      ),
      gatehouse_consumer_lag_seconds: consumers.statistics.map(({ consumer, lag }) =>
        sample(lag, { consumer }),
      ),
      gatehouse_event_loop_delay_seconds: [sample(this.#eventLoopDelay.value)],
      gatehouse_build_info: [sample(1, build)],
      ...(this.#deps.workerChannel?.isThread ? NO_PROCESS_METRICS : processMetrics()),
      ...heapMetrics(),
    } satisfies ServiceSnapshot
    return { ...ofCore, ...featureSamples(this.#deps.featureMetrics.values) }
  }

  async collectKept(): Promise<readonly KeptValue[]> {
    return keptValues(this.#deps.declarations, await this.collect())
  }

  close(): void {
    this.#eventLoopDelay.close()
  }

  /** One check at a time, however many clients read metrics while the store does not respond. */
  async #isStoreUp(): Promise<boolean> {
    this.#ping ??= this.#deps.storage
      .ping()
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        this.#ping = null
      })
    const { promise: late, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => resolve(false), STORE_LIMIT)
    const isUp = await Promise.race([this.#ping, late])
    clearTimeout(timer)
    return isUp
  }
}
