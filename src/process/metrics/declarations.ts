/**
 * Every metric of the core, declared once (docs/design.md, "Observability"). A test compares docs/operations.md and the examples with this
 * list.
 */
import { counter, gauge, histogram, kept, type Metric } from '#base/statistics/metric'

export const METRICS = {
  http_server_request_duration_seconds: kept(
    histogram(
      'Time from the header fields of a request until its response is handed to the socket, of a stream until it ends',
      'method',
      'route',
      'status',
    ),
    'status',
  ),
  gatehouse_sign_ins_total: kept(
    counter('Sign-ins by method and outcome', 'method', 'outcome'),
    'method',
    'outcome',
  ),
  gatehouse_sign_ups_total: kept(counter('Sign-ups by outcome', 'outcome'), 'outcome'),
  gatehouse_breached_password_checks_total: counter(
    'New passwords that were to be compared with breached ones, by outcome',
    'outcome',
  ),
  gatehouse_rate_limited_requests_total: counter('Requests rejected with 429 by limit', 'limit'),
  gatehouse_throttled_password_attempts_total: counter(
    'Attempts at passwords and codes rejected by the login throttle',
  ),
  gatehouse_throttled_accounts_total: counter('Throttled accounts, each at most once a minute'),
  gatehouse_hashing_running: gauge('sum', 'Passwords that are being hashed', 'lane'),
  gatehouse_hashing_waiting: gauge('sum', 'Passwords that wait for a hashing thread', 'lane'),
  gatehouse_hashing_wait_seconds: histogram('Time that passwords have waited for a hashing thread', 'lane'),
  gatehouse_hashing_rejected_total: counter('Passwords rejected with 503 because the queue was full', 'lane'),
  gatehouse_token_cache_entries: gauge('sum', 'Cached tokens'),
  gatehouse_token_cache_hits_total: counter('Requests whose token was cached'),
  gatehouse_token_cache_misses_total: counter('Requests whose token, valid or not, was not cached'),
  gatehouse_token_cache_evictions_total: counter('Cached tokens that made room for others'),
  gatehouse_last_request_flush_seconds: histogram(
    'Duration of writing last requests, every LAST_REQUEST_INTERVAL',
  ),
  gatehouse_last_request_flush_rows_total: counter(
    'Last requests of users, sessions and API keys that were written',
  ),
  gatehouse_last_request_flush_failures_total: counter('Failed writes of last requests, which are repeated'),
  gatehouse_store_up: gauge('min', '1 if the database accepts writes, as for GET /ready'),
  gatehouse_sqlite_writer_waiting: gauge('sum', 'Writes that wait for the next transaction'),
  gatehouse_sqlite_writer_batch_size: histogram('Writes in one transaction'),
  gatehouse_sqlite_writer_commit_seconds: histogram('Duration of a transaction with its fsync'),
  gatehouse_postgres_pool_in_use: gauge('sum', 'Connections to PostgreSQL that are in use'),
  gatehouse_postgres_pool_waiting: gauge('sum', 'Reads and writes that wait for a connection'),
  gatehouse_replica_in_use: gauge('min', '1 while lists are read from the replica (DATABASE_READ_URL)'),
  gatehouse_replica_lag_seconds: gauge(
    'max',
    'Time by which the replica is at most behind acknowledged writes',
  ),
  gatehouse_replica_reads_total: counter(
    'Lists, counts, export pages and event pages that the replica may serve, by the server that did',
    'server',
  ),
  gatehouse_invalidation_feed_connected: gauge('min', '1 while changes by other instances are received'),
  gatehouse_invalidation_lag_seconds: gauge('max', 'Age of the last heartbeat of the invalidation feed'),
  gatehouse_invalidation_interruptions_total: counter(
    'Periods in which the invalidation feed was late or lost, and the cache was bypassed',
  ),
  gatehouse_revocation_wait_seconds: histogram(
    'Time that writes which end access have waited until no other process used what it had cached',
  ),
  gatehouse_caching_processes: gauge('max', 'Processes that cache, as the last revocation has found them'),
  gatehouse_lapsed_leases_total: counter(
    'Processes that did not confirm a revocation until their lease ended',
  ),
  gatehouse_mails_sent_total: counter('Mails that were sent'),
  gatehouse_mails_failed_total: counter('Mails that were refused, dropped or too old'),
  gatehouse_mail_retries_total: counter('Attempts to send a mail that failed and are repeated'),
  gatehouse_mails_waiting: gauge('sum', 'Mails that are not sent yet'),
  gatehouse_job_runs_total: counter('Runs of the jobs of features by outcome', 'job', 'outcome'),
  gatehouse_consumer_events_total: counter(
    'Events for the consumers of the audit log by outcome',
    'consumer',
    'outcome',
  ),
  gatehouse_consumer_waiting_events: gauge(
    'max',
    'Events that wait for a consumer, up to 10,000',
    'consumer',
  ),
  gatehouse_consumer_lag_seconds: gauge(
    'max',
    'Age of the event that a consumer handles, 0 if none waits',
    'consumer',
  ),
  gatehouse_event_loop_delay_seconds: histogram('How late a timer fires, measured every 50 ms'),
  gatehouse_workers: gauge('sum', 'Running workers (WORKERS)'),
  gatehouse_worker_timeouts_total: counter('Collections for which a worker did not respond in time'),
  gatehouse_build_info: gauge('max', 'Always 1', 'version', 'engine', 'node'),
  process_cpu_seconds_total: counter('CPU time of the service, all threads'),
  process_resident_memory_bytes: gauge('sum', 'Resident memory'),
  process_start_time_seconds: gauge('min', 'Start, in seconds since the epoch'),
  process_open_fds: gauge('sum', 'Open file descriptors'),
  nodejs_heap_size_used_bytes: gauge('sum', 'Used JavaScript heap'),
  nodejs_heap_size_limit_bytes: gauge('sum', 'Limit of the JavaScript heap'),
} as const satisfies Record<string, Metric>

export type MetricName = keyof typeof METRICS
