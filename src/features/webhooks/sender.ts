/** Posts one message of a webhook: an event of the audit log, or a ping. */

import { type HttpClient, HttpRequestError, type HttpResponse } from '#base/http-client/http-client'
import type { LoggedEvent } from '#core/audit-log/event-feed'
import type { Ed25519Signer } from '#core/auth/signing-keys'
import { signatureOf } from './signature.ts'
import type { AttemptOutcome, WebhookTarget } from './webhook.ts'

/** Bytes of a response that are read, to use the connection again. */
const MAX_BYTES = 65_536

const DAY = 86_400_000

/** What is sent. Every attempt at it has the same id and body. */
export interface Message {
  /** `webhook-id` */
  readonly id: string
  readonly type: string
  readonly body: string
}

export interface SendResult {
  readonly outcome: AttemptOutcome
  /** `null` without a response. */
  readonly status: number | null
  /** Milliseconds. */
  readonly duration: number
  /** What the receiver asks for with `Retry-After`, in milliseconds: a day at most; 0: nothing. */
  readonly retryAfter: number
}

export const messageOf = (event: LoggedEvent): Message => ({
  id: event.id,
  type: event.type,
  body: JSON.stringify({ type: event.type, timestamp: event.at, data: event }),
})

export const PING = 'webhook.ping'

/** @param now milliseconds since the epoch. */
export const pingOf = (id: string, now: number): Message => ({
  id,
  type: PING,
  body: JSON.stringify({ type: PING, timestamp: new Date(now).toISOString(), data: {} }),
})

/** RFC 9110 §10.2.3: seconds, or a date. */
const retryAfterOf = ({ status, headers }: HttpResponse, now: number): number => {
  const { 'retry-after': value = '' } = headers
  if (status < 400 || value === '') return 0
  const milliseconds = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - now
  return milliseconds > 0 ? Math.min(milliseconds, DAY) : 0
}

export interface SenderDeps {
  readonly client: HttpClient
  readonly ed25519: Ed25519Signer | null
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** Milliseconds until an attempt fails. */
  readonly timeLimit: number
}

export class Sender {
  readonly #deps: SenderDeps

  constructor(deps: SenderDeps) {
    this.#deps = deps
  }

  /** @returns `null` if the signal ended the attempt. Never throws for what the receiver does. */
  async send(message: Message, target: WebhookTarget, signal: AbortSignal): Promise<SendResult | null> {
    const startedAt = performance.now()
    const duration = (): number => Math.round(performance.now() - startedAt)
    try {
      const response = await this.#post(message, target, signal)
      const { status } = response
      return {
        outcome: status >= 200 && status < 300 ? 'delivered' : 'rejected',
        status,
        duration: duration(),
        retryAfter: retryAfterOf(response, this.#deps.clock()),
      }
    } catch (error) {
      if (!(error instanceof HttpRequestError)) throw error
      const { failure } = error
      if (failure === 'aborted') return null
      // A longer body is cut, so that it is no failure.
      const outcome = failure === 'tooLarge' ? 'connection' : failure
      return { outcome, status: null, duration: duration(), retryAfter: 0 }
    }
  }

  #post({ id, body }: Message, { url, secrets }: WebhookTarget, signal: AbortSignal): Promise<HttpResponse> {
    const { client, ed25519, clock, timeLimit } = this.#deps
    const now = clock()
    const timestamp = Math.floor(now / 1_000)
    const valid = secrets.filter(({ expiresAt }) => expiresAt === null || expiresAt > now)
    const signature = signatureOf(
      { id, timestamp, body },
      valid.map(({ text }) => text),
      ed25519,
    )
    return client.request(new URL(url), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'Gatehouse-Webhooks',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signature,
      },
      body,
      timeLimit,
      maxBytes: MAX_BYTES,
      cutsBody: true,
      signal,
    })
  }
}
