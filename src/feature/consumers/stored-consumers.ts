/** The cursors of consumers in the store. The writer thread of SQLite imports this module. */
import type { LogPosition } from '#core/audit-log/listing'
import { firstRow, type Query, query, type Steps } from '#storage/operations/operation'
import { invalidatesNothing, type Write } from '#storage/operations/write'
import { type FeatureStore, type StoredFeature, table } from '#storage/stored-feature'
import type { JobRun } from '../jobs/jobs.ts'
import { hasLease } from '../jobs/stored-jobs.ts'

/** Times are milliseconds since the epoch. */
interface ConsumersTable {
  /** `notes.index` */
  name: string
  /** The store's kind of positions: those of another kind are invalid. */
  position_kind: string
  /** With `event_id` a `LogPosition`: the consumer has handled what is at or before it. */
  position: number
  event_id: string
  /** Increases when an operator moves the cursor. */
  revision: number
  /** Attempts for the event at `failed_position` that failed; 0: none did. */
  failures: number
  failed_position: number
  failed_event_id: string
  error: string
  updated_at: number
}

export interface StoredConsumer {
  readonly name: string
  readonly positionKind: string
  readonly position: number
  readonly eventId: string
  readonly revision: number
  readonly failures: number
  readonly failedPosition: number
  readonly failedEventId: string
  readonly error: string
  readonly updatedAt: number
}

/** The run that handles events, which must have the lease, and the revision of the cursor that it began with. */
export interface ConsumerRun {
  readonly run: Pick<JobRun, 'job' | 'fence'>
  readonly name: string
  readonly revision: number
}

/** `leaseLost`: another process is the consumer now. `changed`: an operator has moved the cursor. */
export type ConsumerOutcome = 'done' | 'leaseLost' | 'changed'

/** Adds a cursor, unless the consumer has one. */
function* addConsumer(
  name: string,
  positionKind: string,
  { position, id }: LogPosition,
  now: number,
): Steps<Write<void>> {
  yield {
    text: `INSERT INTO consumers
        (name, position_kind, position, event_id, revision, failures, failed_position, failed_event_id, error, updated_at)
      VALUES ($1, $2, $3, $4, 0, 0, 0, '', '', $5) ON CONFLICT (name) DO NOTHING`,
    values: [name, positionKind, position, id, now],
  }
  return invalidatesNothing(undefined)
}

/** Moves a cursor forward, never back. */
function* advanceConsumer(
  { run, name, revision }: ConsumerRun,
  { position, id }: LogPosition,
  now: number,
): Steps<Write<ConsumerOutcome>> {
  if (!(yield* hasLease(run))) return invalidatesNothing('leaseLost')
  const moved = yield* firstRow({
    text: `UPDATE consumers SET position = $3, event_id = $4, failures = 0, error = '', updated_at = $5
      WHERE name = $1 AND revision = $2 AND (position, event_id) <= ($3, $4) RETURNING name`,
    values: [name, revision, position, id, now],
  })
  return invalidatesNothing(moved === undefined ? 'changed' : 'done')
}

/** Stores that the handler has failed for an event. The cursor stays. */
function* recordConsumerFailure(
  { run, name, revision }: ConsumerRun,
  { position, id }: LogPosition,
  failure: { readonly failures: number; readonly error: string },
  now: number,
): Steps<Write<ConsumerOutcome>> {
  if (!(yield* hasLease(run))) return invalidatesNothing('leaseLost')
  const recorded = yield* firstRow({
    text: `UPDATE consumers SET failures = $3, error = $4, failed_position = $5, failed_event_id = $6, updated_at = $7
      WHERE name = $1 AND revision = $2 RETURNING name`,
    values: [name, revision, failure.failures, failure.error, position, id, now],
  })
  return invalidatesNothing(recorded === undefined ? 'changed' : 'done')
}

/** Sets a cursor for an operator, forward or back. The consumer continues from it. @returns whether there is the consumer. */
function* setConsumer(
  name: string,
  positionKind: string,
  { position, id }: LogPosition,
  now: number,
): Steps<Write<boolean>> {
  const set = yield* firstRow({
    text: `UPDATE consumers
      SET position_kind = $2, position = $3, event_id = $4, revision = revision + 1, failures = 0, error = '', updated_at = $5
      WHERE name = $1 RETURNING name`,
    values: [name, positionKind, position, id, now],
  })
  return invalidatesNothing(set !== undefined)
}

const COLUMNS = `name, position_kind AS "positionKind", position, event_id AS "eventId", revision, failures,
  failed_position AS "failedPosition", failed_event_id AS "failedEventId", error, updated_at AS "updatedAt"`

const findConsumer = (name: string): Query<StoredConsumer | undefined> =>
  query(
    { name: 'find-consumer', text: `SELECT ${COLUMNS} FROM consumers WHERE name = $1`, values: [name] },
    ([consumer]: readonly StoredConsumer[]) => consumer,
  )

const listConsumers = (): Query<readonly StoredConsumer[]> =>
  query(
    { text: `SELECT ${COLUMNS} FROM consumers ORDER BY name`, values: [] },
    (consumers: readonly StoredConsumer[]) => consumers,
  )

export const storedConsumers = {
  name: 'consumers',
  module: import.meta.url,
  migrations: {
    '0001_consumers': {
      sql: ({ text }) => [
        `create table "consumers" (
          "name" ${text} primary key,
          "position_kind" ${text} not null,
          "position" bigint not null,
          "event_id" ${text} not null,
          "revision" bigint not null,
          "failures" bigint not null,
          "failed_position" bigint not null,
          "failed_event_id" ${text} not null,
          "error" ${text} not null,
          "updated_at" bigint not null
        )`,
      ],
    },
  },
  tables: { consumers: table<ConsumersTable>({ owner: null, key: 'name', updatedAt: 'updated_at' }) },
  operations: { addConsumer, advanceConsumer, recordConsumerFailure, setConsumer },
  reads: { findConsumer, listConsumers },
} satisfies StoredFeature

export type ConsumerStore = FeatureStore<typeof storedConsumers.operations, typeof storedConsumers.reads>
