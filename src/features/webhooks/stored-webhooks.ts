/** Webhooks in the store, with their cursors and leases. The writer thread of SQLite imports this module. */
import type { AuditEvent } from '#core/audit-log/event'
import type { LogPosition } from '#core/audit-log/listing'
import { recordStatement } from '#core/audit-log/stored-events'
import { firstRow, type Query, query, type Statement, type Steps } from '#storage/operations/operation'
import { parameters } from '#storage/operations/parameters'
import { invalidatesNothing, type Write } from '#storage/operations/write'
import { type FeatureStore, type StoredFeature, table } from '#storage/stored-feature'
import {
  ATTEMPTS_KEPT,
  type DisabledReason,
  MAX_WEBHOOKS,
  type Webhook,
  type WebhookAttempt,
} from './webhook.ts'

/** Times are milliseconds since the epoch, 0 for none. */
interface WebhooksTable {
  id: string
  /** Without the query. */
  url: string
  description: string | null
  /** A JSON array; `null`: all types. */
  types: string | null
  /** A `WebhookTarget`, encrypted. */
  target: string
  /** 0 or 1 */
  is_paused: number
  disabled_reason: string | null
  /** The store's kind of positions: those of another kind are invalid. */
  position_kind: string
  /** With `event_id` a `LogPosition`: what is at or before it is delivered. */
  position: number
  event_id: string
  failures: number
  failed_event_id: string | null
  retry_at: number
  /** The `webhook-id` of a ping that was requested; `''`: none was. */
  ping_id: string
  /**
   * Increases when a process begins to deliver, and when an administrator moves the cursor: what a process stores that began before,
   * changes nothing.
   */
  fence: number
  lease_expires_at: number
  created_at: number
  /** The time of the last change, also of the cursor. */
  updated_at: number
}

interface WebhookAttemptsTable {
  /** UUIDv7 */
  id: string
  webhook_id: string
  event_id: string
  type: string
  attempt: number
  at: number
  duration: number
  /** 0: no response. */
  status: number
  outcome: string
}

/** A position in a store, whose positions are of one kind (`EventStore.positionKind`). */
export interface Cursor {
  readonly kind: string
  readonly position: LogPosition
}

/** The right of a process to deliver. */
export interface HeldWebhook {
  readonly id: string
  readonly fence: number
}

/** What a process knows of a webhook before it delivers. */
export interface WebhookState extends HeldWebhook {
  /** Neither paused nor disabled. */
  readonly isEnabled: boolean
  readonly cursor: Cursor
  readonly retryAt: number
  readonly leaseExpiresAt: number
  readonly pingId: string
}

/** What a process delivers with. */
export interface Deliverable extends HeldWebhook {
  readonly types: readonly string[] | null
  readonly target: string
  readonly cursor: Cursor
  readonly failures: number
  readonly failedEventId: string | null
}

export interface Progress {
  readonly cursor: Cursor
  readonly failures: number
  readonly failedEventId: string | null
  /** 0: at once. */
  readonly retryAt: number
  readonly disabledReason: DisabledReason | null
  /** 0 ends the lease. */
  readonly leaseExpiresAt: number
}

export interface WebhookOptions {
  readonly url: string
  readonly description: string | null
  readonly types: readonly string[] | null
  /** A `WebhookTarget`, encrypted. */
  readonly target: string
}

/** Concerns no user. */
type WebhookEvent = AuditEvent<null>

/** The bound of their number is exact. */
const LOCK: Statement = { text: ({ lockByName }) => lockByName('$1'), values: ['webhooks'] }

const typesOf = (types: readonly string[] | null): string | null =>
  types === null ? null : JSON.stringify(types)

const parsedTypes = (types: string | null): readonly string[] | null =>
  types === null ? null : JSON.parse(types)

function* addWebhook(
  id: string,
  { url, description, types, target }: WebhookOptions,
  { kind, position }: Cursor,
  event: WebhookEvent,
): Steps<Write<'added' | 'tooManyWebhooks'>> {
  yield LOCK
  const added = yield* firstRow({
    text: `INSERT INTO webhooks (id, url, description, types, target, is_paused, disabled_reason, position_kind, position,
        event_id, failures, failed_event_id, retry_at, ping_id, fence, lease_expires_at, created_at, updated_at)
      SELECT $1, $2, $3, $4, $5, 0, NULL, $6, $7, $8, 0, NULL, 0, '', 0, 0, $9, $9
      WHERE (SELECT count(*) FROM webhooks) < ${MAX_WEBHOOKS} RETURNING id`,
    values: [id, url, description, typesOf(types), target, kind, position.position, position.id, event.at],
  })
  if (added === undefined) return invalidatesNothing('tooManyWebhooks')
  yield recordStatement(event)
  return invalidatesNothing('added')
}

/** Records the event of a change. @param changed the row, if there is the webhook. */
function* recorded(changed: unknown, event: WebhookEvent): Steps<Write<boolean>> {
  if (changed === undefined) return invalidatesNothing(false)
  yield recordStatement(event)
  return invalidatesNothing(true)
}

/** Ends deliveries that are under way: what their process stores later changes nothing. */
const INTERRUPT = 'fence = fence + 1, lease_expires_at = 0'

/** @param from the target that the change was made of: of two changes at once, one is not done. */
function* changeWebhook(
  id: string,
  from: string,
  { url, description, types, target }: WebhookOptions,
  event: WebhookEvent,
): Steps<Write<boolean>> {
  const changed = yield* firstRow({
    text: `UPDATE webhooks SET url = $3, description = $4, types = $5, target = $6, retry_at = 0, ${INTERRUPT}, updated_at = $7
      WHERE id = $1 AND target = $2 RETURNING id`,
    values: [id, from, url, description, typesOf(types), target, event.at],
  })
  return yield* recorded(changed, event)
}

/** Stores what is encrypted with another key. Deliveries go on. */
function* replaceTarget(id: string, from: string, to: string): Steps<Write<void>> {
  yield { text: 'UPDATE webhooks SET target = $3 WHERE id = $1 AND target = $2', values: [id, from, to] }
  return invalidatesNothing(undefined)
}

function* removeWebhook(id: string, event: WebhookEvent): Steps<Write<boolean>> {
  // First the row that deliveries lock: none adds attempts afterwards.
  const removed = yield* firstRow({ text: 'DELETE FROM webhooks WHERE id = $1 RETURNING id', values: [id] })
  yield { text: 'DELETE FROM webhook_attempts WHERE webhook_id = $1', values: [id] }
  return yield* recorded(removed, event)
}

function* pauseWebhook(id: string, event: WebhookEvent): Steps<Write<boolean>> {
  const paused = yield* firstRow({
    text: `UPDATE webhooks SET is_paused = 1, ${INTERRUPT}, updated_at = $2 WHERE id = $1 RETURNING id`,
    values: [id, event.at],
  })
  return yield* recorded(paused, event)
}

const RESTART = `failures = 0, failed_event_id = NULL, retry_at = 0, ${INTERRUPT}`

const setCursor = (id: string, { kind, position }: Cursor, now: number): Statement => ({
  text: `UPDATE webhooks SET position_kind = $2, position = $3, event_id = $4, ${RESTART}, updated_at = $5
    WHERE id = $1 RETURNING id`,
  values: [id, kind, position.position, position.id, now],
})

/** What a resumption leaves out. */
export interface Skip {
  readonly eventId: string
  /** Behind the event; `null`: where the cursor was. */
  readonly cursor: Cursor | null
}

/** @param skip only while its event is the one that fails: a retry may have succeeded at the same time. */
function* resumeWebhook(id: string, skip: Skip | null, event: WebhookEvent): Steps<Write<boolean>> {
  const resumed = yield* firstRow({
    text: `UPDATE webhooks SET is_paused = 0, disabled_reason = NULL, ${RESTART}, updated_at = $2
      WHERE id = $1 ${skip === null ? '' : 'AND failed_event_id = $3'} RETURNING id`,
    values: [id, event.at, ...(skip === null ? [] : [skip.eventId])],
  })
  if (resumed !== undefined && skip !== null && skip.cursor !== null)
    yield setCursor(id, skip.cursor, event.at)
  return yield* recorded(resumed, event)
}

/** Sets the cursor, forward or back. */
function* replayWebhook(id: string, cursor: Cursor, event: WebhookEvent): Steps<Write<boolean>> {
  return yield* recorded(yield* firstRow(setCursor(id, cursor, event.at)), event)
}

function* requestPing(id: string, pingId: string): Steps<Write<boolean>> {
  const requested = yield* firstRow({
    text: 'UPDATE webhooks SET ping_id = $2 WHERE id = $1 RETURNING id',
    values: [id, pingId],
  })
  return invalidatesNothing(requested !== undefined)
}

/** Gives a ping to one of all processes. @returns the target; `null` if another process has it. */
function* takePing(id: string, pingId: string): Steps<Write<string | null>> {
  const taken = yield* firstRow<{ target: string }>({
    text: "UPDATE webhooks SET ping_id = '' WHERE id = $1 AND ping_id = $2 RETURNING target",
    values: [id, pingId],
  })
  return invalidatesNothing(taken?.target ?? null)
}

const CURSOR = 'position_kind AS "positionKind", position, event_id AS "eventId"'

interface CursorColumns {
  readonly positionKind: string
  readonly position: number
  readonly eventId: string
}

const cursorOf = ({ positionKind: kind, position, eventId: id }: CursorColumns): Cursor => ({
  kind,
  position: { position, id },
})

/**
 * Gives an enabled webhook to one of all processes.
 * @param lease milliseconds. One that ends much later is from before a clock was set back.
 * @returns `null` if another process has it.
 */
function* takeWebhook(id: string, now: number, lease: number): Steps<Write<Deliverable | null>> {
  const taken = yield* firstRow<
    CursorColumns &
      Pick<Deliverable, 'fence' | 'target' | 'failures' | 'failedEventId'> & { types: string | null }
  >({
    text: `UPDATE webhooks SET fence = fence + 1, lease_expires_at = $3
      WHERE id = $1 AND is_paused = 0 AND disabled_reason IS NULL AND (lease_expires_at <= $2 OR lease_expires_at > $4)
      RETURNING fence, types, target, failures, failed_event_id AS "failedEventId", ${CURSOR}`,
    values: [id, now, now + lease, now + 10 * lease],
  })
  if (taken === undefined) return invalidatesNothing(null)
  const { fence, types, target, failures, failedEventId } = taken
  const cursor = cursorOf(taken)
  return invalidatesNothing({ id, fence, types: parsedTypes(types), target, failures, failedEventId, cursor })
}

/** @param event that the webhook was disabled. @returns whether the process still holds the webhook; otherwise nothing is stored. */
function* storeProgress(
  { id, fence }: HeldWebhook,
  { cursor, failures, failedEventId, retryAt, disabledReason, leaseExpiresAt }: Progress,
  attempts: readonly WebhookAttempt[],
  event: WebhookEvent | null,
  now: number,
): Steps<Write<boolean>> {
  const { kind, position } = cursor
  const stored = yield* firstRow({
    text: `UPDATE webhooks SET position_kind = $3, position = $4, event_id = $5, failures = $6, failed_event_id = $7,
        retry_at = $8, disabled_reason = $9, lease_expires_at = $10, updated_at = $11
      WHERE id = $1 AND fence = $2 RETURNING id`,
    values: [
      ...[id, fence, kind, position.position, position.id],
      ...[failures, failedEventId, retryAt, disabledReason, leaseExpiresAt, now],
    ],
  })
  if (stored === undefined) return invalidatesNothing(false)
  yield* addAttempts(id, attempts)
  if (event !== null) yield recordStatement(event)
  return invalidatesNothing(true)
}

const ATTEMPT_COLUMNS = [
  'id',
  'webhook_id',
  'event_id',
  'type',
  'attempt',
  'at',
  'duration',
  'status',
  'outcome',
]

function* addAttempts(webhookId: string, attempts: readonly WebhookAttempt[]): Steps<void> {
  const kept = attempts.slice(-ATTEMPTS_KEPT)
  if (kept.length === 0) return
  yield {
    text: `INSERT INTO webhook_attempts (${ATTEMPT_COLUMNS.join(', ')})
      VALUES ${kept.map((_, row) => `(${parameters(ATTEMPT_COLUMNS, 1 + row * ATTEMPT_COLUMNS.length)})`).join(', ')}`,
    values: kept.flatMap(({ id, eventId, type, attempt, at, duration, status, outcome }) => [
      ...[id, webhookId, eventId, type, attempt, at, duration, status ?? 0, outcome],
    ]),
  }
  yield {
    text: `DELETE FROM webhook_attempts WHERE webhook_id = $1 AND id < (SELECT min(id) FROM
      (SELECT id FROM webhook_attempts WHERE webhook_id = $1 ORDER BY id DESC LIMIT ${ATTEMPTS_KEPT}) AS kept)`,
    values: [webhookId],
  }
}

/** Stores the attempt of a ping. */
function* addAttempt(webhookId: string, attempt: WebhookAttempt): Steps<Write<void>> {
  const found = yield* firstRow({
    text: ({ forKeyShare }) => `SELECT id FROM webhooks WHERE id = $1 ${forKeyShare}`,
    values: [webhookId],
  })
  if (found !== undefined) yield* addAttempts(webhookId, [attempt])
  return invalidatesNothing(undefined)
}

const WEBHOOK = `id, url, description, types, is_paused AS "isPaused", disabled_reason AS "disabledReason", failures,
  failed_event_id AS "failedEventId", NULLIF(retry_at, 0) AS "retryAt", created_at AS "createdAt"`

type WebhookColumns = Omit<Webhook, 'types' | 'isPaused'> & {
  readonly types: string | null
  readonly isPaused: number
}

const webhookOf = (row: WebhookColumns): Webhook => ({
  ...row,
  types: parsedTypes(row.types),
  isPaused: row.isPaused === 1,
})

/** All webhooks, in the order of their creation. */
const listWebhooks = (): Query<readonly Webhook[]> =>
  query(
    { text: `SELECT ${WEBHOOK} FROM webhooks ORDER BY id`, values: [] },
    (found: readonly WebhookColumns[]) => found.map(webhookOf),
  )

/** A webhook and its target, which is encrypted. */
const findWebhook = (id: string): Query<{ webhook: Webhook; target: string } | undefined> =>
  query(
    { text: `SELECT ${WEBHOOK}, target FROM webhooks WHERE id = $1`, values: [id] },
    ([found]: readonly (WebhookColumns & { target: string })[]) => {
      if (found === undefined) return undefined
      const { target, ...webhook } = found
      return { webhook: webhookOf(webhook), target }
    },
  )

/** Newest first. */
const listAttempts = (webhookId: string): Query<readonly WebhookAttempt[]> =>
  query(
    {
      text: `SELECT id, event_id AS "eventId", type, attempt, at, duration, NULLIF(status, 0) AS status, outcome
        FROM webhook_attempts WHERE webhook_id = $1 ORDER BY id DESC`,
      values: [webhookId],
    },
    (found: readonly WebhookAttempt[]) => found,
  )

const listWebhookStates = (): Query<readonly WebhookState[]> =>
  query(
    {
      name: 'webhook-states',
      text: `SELECT id, is_paused AS "isPaused", disabled_reason AS "disabledReason", retry_at AS "retryAt",
          lease_expires_at AS "leaseExpiresAt", ping_id AS "pingId", fence, ${CURSOR} FROM webhooks`,
      values: [],
    },
    (
      found: readonly (Pick<WebhookState, 'id' | 'fence' | 'retryAt' | 'leaseExpiresAt' | 'pingId'> &
        CursorColumns & { isPaused: number; disabledReason: string | null })[],
    ) =>
      found.map(state => ({
        id: state.id,
        fence: state.fence,
        isEnabled: state.isPaused === 0 && state.disabledReason === null,
        cursor: cursorOf(state),
        retryAt: state.retryAt,
        leaseExpiresAt: state.leaseExpiresAt,
        pingId: state.pingId,
      })),
  )

export const storedWebhooks = {
  name: 'webhooks',
  module: import.meta.url,
  migrations: {
    '0001_webhooks': {
      sql: ({ text }) => [
        `create table "webhooks" (
          "id" ${text} primary key,
          "url" ${text} not null,
          "description" ${text},
          "types" ${text},
          "target" ${text} not null,
          "is_paused" integer not null,
          "disabled_reason" ${text},
          "position_kind" ${text} not null,
          "position" bigint not null,
          "event_id" ${text} not null,
          "failures" integer not null,
          "failed_event_id" ${text},
          "retry_at" bigint not null,
          "ping_id" ${text} not null,
          "fence" bigint not null,
          "lease_expires_at" bigint not null,
          "created_at" bigint not null,
          "updated_at" bigint not null
        )`,
        `create table "webhook_attempts" (
          "id" ${text} primary key,
          "webhook_id" ${text} not null,
          "event_id" ${text} not null,
          "type" ${text} not null,
          "attempt" integer not null,
          "at" bigint not null,
          "duration" integer not null,
          "status" integer not null,
          "outcome" ${text} not null
        )`,
        'create index "webhook_attempts_by_webhook" on "webhook_attempts" ("webhook_id", "id")',
      ],
    },
  },
  tables: {
    webhooks: table<WebhooksTable>({ owner: null, key: 'id', updatedAt: 'updated_at' }),
    webhook_attempts: table<WebhookAttemptsTable>({ owner: null, key: 'id' }),
  },
  operations: {
    ...{
      addWebhook,
      changeWebhook,
      replaceTarget,
      removeWebhook,
      pauseWebhook,
      resumeWebhook,
      replayWebhook,
    },
    ...{ requestPing, takePing, takeWebhook, storeProgress, addAttempt },
  },
  reads: { listWebhooks, findWebhook, listAttempts, listWebhookStates },
} satisfies StoredFeature

export type WebhookStore = FeatureStore<typeof storedWebhooks.operations, typeof storedWebhooks.reads>
