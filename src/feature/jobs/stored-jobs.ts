/** The leases of jobs in the store. The writer thread of SQLite imports this module. */
import { firstRow, type Query, query, type Steps } from '#storage/operations/operation'
import { invalidatesNothing, type Write } from '#storage/operations/write'
import { type FeatureStore, type StoredFeature, table } from '#storage/stored-feature'

/** Times are milliseconds since the epoch. */
interface JobLeasesTable {
  /** `notes.removeOld` */
  name: string
  /** Increases with each lease. */
  fence: number
  /** The end of the current lease; 0: nobody has one. */
  expires_at: number
  /** When the job is to run next. */
  due_at: number
  /** Runs that failed since the last one that succeeded. */
  failures: number
}

export interface Lease {
  readonly fence: number
  readonly failures: number
}

/** Milliseconds by which the clocks of two processes may differ. */
const SKEW = 60_000

/** Spans by which a process may have been late when it compares. */
const LATE = 10

/**
 * Whether a time in the store is still to come. One that is much further ahead than any process has set it is from before a clock was set
 * back: a job does not wait for it.
 * @param span milliseconds by which it is set ahead.
 */
export const isAhead = (time: number, now: number, span: number): boolean =>
  time > now && time <= now + LATE * span + SKEW

/**
 * Gives the lease of a job that is due to one of all processes.
 * @param every milliseconds between two runs.
 * @param duration of the lease in milliseconds.
 * @returns `null` if another process has the lease, or the job is not due.
 */
function* takeLease(name: string, now: number, every: number, duration: number): Steps<Write<Lease | null>> {
  yield {
    text: `INSERT INTO job_leases (name, fence, expires_at, due_at, failures) VALUES ($1, 0, 0, 0, 0)
      ON CONFLICT (name) DO NOTHING`,
    values: [name],
  }
  const found = yield* firstRow<Omit<JobLeasesTable, 'name'>>({
    text: ({ forUpdate }) =>
      `SELECT fence, expires_at, due_at, failures FROM job_leases WHERE name = $1 ${forUpdate}`,
    values: [name],
  })
  if (found === undefined) throw new Error(`the job ${name} has no lease`)
  if (isAhead(found.expires_at, now, duration) || isAhead(found.due_at, now, every))
    return invalidatesNothing(null)
  const fence = found.fence + 1
  yield {
    text: 'UPDATE job_leases SET fence = $2, expires_at = $3 WHERE name = $1',
    values: [name, fence, now + duration],
  }
  return invalidatesNothing({ fence, failures: found.failures })
}

/** @returns whether the lease is still the newest one of its job. */
function* renewLease(name: string, fence: number, expiresAt: number): Steps<Write<boolean>> {
  const renewed = yield* firstRow({
    text: 'UPDATE job_leases SET expires_at = $3 WHERE name = $1 AND fence = $2 RETURNING name',
    values: [name, fence, expiresAt],
  })
  return invalidatesNothing(renewed !== undefined)
}

/** Ends a lease, unless another process has a newer one. */
function* endLease(name: string, fence: number, dueAt: number, failures: number): Steps<Write<void>> {
  yield {
    text: 'UPDATE job_leases SET expires_at = 0, due_at = $3, failures = $4 WHERE name = $1 AND fence = $2',
    values: [name, fence, dueAt, failures],
  }
  return invalidatesNothing(undefined)
}

/**
 * For operations of jobs: whether the run still has the lease of its job. If it has, no other process gets the lease before the
 * operation's transaction ends. A process that was frozen for longer than its lease thus changes nothing.
 */
export function* hasLease({ job, fence }: { readonly job: string; readonly fence: number }): Steps<boolean> {
  const found = yield* firstRow({
    text: ({ forKeyShare }) => `SELECT name FROM job_leases WHERE name = $1 AND fence = $2 ${forKeyShare}`,
    values: [job, fence],
  })
  return found !== undefined
}

/** When a job may run next; 0 before its first run. */
const notBefore = (name: string): Query<number> =>
  query(
    {
      name: 'job-not-before',
      text: 'SELECT expires_at AS "expiresAt", due_at AS "dueAt" FROM job_leases WHERE name = $1',
      values: [name],
    },
    ([lease]: readonly { expiresAt: number; dueAt: number }[]) =>
      lease === undefined ? 0 : Math.max(lease.expiresAt, lease.dueAt),
  )

export const storedJobs = {
  name: 'jobs',
  module: import.meta.url,
  migrations: {
    '0001_job_leases': {
      sql: ({ text }) => [
        `create table "job_leases" (
          "name" ${text} primary key,
          "fence" bigint not null,
          "expires_at" bigint not null,
          "due_at" bigint not null,
          "failures" bigint not null
        )`,
      ],
    },
  },
  tables: { job_leases: table<JobLeasesTable>({ owner: null, key: 'name', updatedAt: 'fence' }) },
  operations: { takeLease, renewLease, endLease },
  reads: { notBefore },
} satisfies StoredFeature

export type JobStore = FeatureStore<typeof storedJobs.operations, typeof storedJobs.reads>
