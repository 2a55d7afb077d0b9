/** Webhooks: URLs to which the service posts the events of the audit log (docs/events.md). */

/** `gone`: the receiver has responded with 410. `failing`: every attempt for an event has failed. */
export type DisabledReason = 'gone' | 'failing'

/** Times are milliseconds since the epoch. */
export interface Webhook {
  readonly id: string
  /** Without the query, which may be secret. */
  readonly url: string
  readonly description: string | null
  /** Types of events; `null`: all. */
  readonly types: readonly string[] | null
  readonly isPaused: boolean
  readonly disabledReason: DisabledReason | null
  /** Attempts for the next event that failed. */
  readonly failures: number
  /** The event that fails. */
  readonly failedEventId: string | null
  readonly retryAt: number | null
  readonly createdAt: number
}

/** What a webhook is sent with. It is stored encrypted. */
export interface WebhookTarget {
  readonly url: string
  /** The newest first. Those before it sign, too, until they expire. */
  readonly secrets: readonly WebhookSecret[]
}

export interface WebhookSecret {
  /** `whsec_` and base64. */
  readonly text: string
  /** Milliseconds since the epoch; `null`: never. */
  readonly expiresAt: number | null
}

/** `rejected`: the status was not 2xx. The others are failures of the request, see `RequestFailure`. */
export type AttemptOutcome =
  | 'delivered'
  | 'rejected'
  | 'timeout'
  | 'connection'
  | 'tls'
  | 'blocked'
  | 'unresolved'

export interface WebhookAttempt {
  readonly id: string
  /** `webhook-id` of the request: the id of the event, or of the ping. */
  readonly eventId: string
  readonly type: string
  /** 1 for the first attempt at the event. */
  readonly attempt: number
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Milliseconds. */
  readonly duration: number
  /** `null` without a response. */
  readonly status: number | null
  readonly outcome: AttemptOutcome
}

/** Bounds the work of each process, and the metrics with a webhook's id. */
export const MAX_WEBHOOKS = 100

/** Attempts that are kept of each webhook. */
export const ATTEMPTS_KEPT = 100

const timestamp = (milliseconds: number): string => new Date(milliseconds).toISOString()

const nullableTimestamp = (milliseconds: number | null): string | null =>
  milliseconds === null ? null : timestamp(milliseconds)

const stateOf = ({ isPaused, disabledReason }: Webhook): 'enabled' | 'paused' | 'disabled' => {
  if (disabledReason !== null) return 'disabled'
  return isPaused ? 'paused' : 'enabled'
}

export const serializeWebhook = (webhook: Webhook) => {
  const { id, url, description, types, disabledReason, failures, failedEventId } = webhook
  return {
    ...{ id, url, description, types, state: stateOf(webhook), disabledReason, failures, failedEventId },
    retryAt: nullableTimestamp(webhook.retryAt),
    createdAt: timestamp(webhook.createdAt),
  }
}

export const serializeAttempt = ({ at, duration, ...attempt }: WebhookAttempt) => ({
  ...attempt,
  at: timestamp(at),
  durationMs: duration,
})
