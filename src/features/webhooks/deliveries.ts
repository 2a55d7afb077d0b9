/**
 * Delivers the events of the audit log to webhooks: in order, at least once, one at a time for each webhook. Every process takes webhooks
 * that have something to deliver, each for some seconds, by a lease with a fencing number.
 */
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '#base/ids'
import { type AuditEvent, OPERATOR, serializeEvent } from '#core/audit-log/event'
import { COUNTED, isLater, LOG_START, type LogPosition } from '#core/audit-log/listing'
import { DecryptionError } from '#feature/encryption/keyring'
import type { WebhooksDeps } from './definitions.ts'
import { type Message, messageOf, pingOf, Sender, type SendResult } from './sender.ts'
import type { Deliverable, HeldWebhook, WebhookState } from './stored-webhooks.ts'
import { decryptTarget, encryptTarget } from './targets.ts'
import { type DisabledReason, MAX_WEBHOOKS, type WebhookAttempt, type WebhookTarget } from './webhook.ts'

/** Milliseconds from one look at the webhooks to the next; while there are none. */
const INTERVAL = 200
const IDLE_INTERVAL = 1_000

/** Milliseconds for which a process keeps a webhook. Then another one may continue. */
const HOLD = 5_000

/** Milliseconds between two writes of a cursor. After a crash, what was delivered since the last one is delivered again. */
const STORE_INTERVAL = 500

/** Milliseconds by which a lease is longer than the last attempt that it may cover. */
const LEASE_MARGIN = 5_000

/** Events of one read. */
const PAGE = 100

/** Milliseconds from a failed attempt to the next (Standard Webhooks, "Retry schedule"). After the last one the webhook is disabled. */
const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const RETRIES = [
  ...[5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR],
  ...[10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR],
]

/** The part of a delay that is added to it at most, so that the webhooks of a receiver that was down do not return together. */
const JITTER = 0.1

/** Milliseconds until a webhook whose secret cannot be decrypted is looked at again. */
const UNREADABLE_RETRY = MINUTE

/** Milliseconds between two measurements of what waits. */
const MEASURE_INTERVAL = 15 * SECOND

/** Milliseconds for which a stop waits for attempts, so that what a receiver accepts then is not sent again. */
const GRACE = 500

/** Connections to one host, which all webhooks may share, each with a ping. */
const MAX_CONNECTIONS = 2 * MAX_WEBHOOKS

/** The lease has ended: another process delivers, or an administrator has changed the webhook. */
class LeaseLost extends Error {}

const withJitter = (delay: number): number => delay + randomInt(Math.ceil(delay * JITTER))

interface Shared {
  readonly deps: WebhooksDeps
  readonly sender: Sender
  /** Aborted when the service stops. */
  readonly signal: AbortSignal
  /** Aborted soon after, with the attempts that are under way. */
  readonly attempts: AbortSignal
  /** The end of the log, as of the last look. */
  readonly end: () => LogPosition
  /** Whether, as of the last look, the webhook is still this process's: it is neither deleted nor changed. */
  readonly isHeld: (webhook: HeldWebhook) => boolean
}

const attemptOf = (
  { id: eventId, type }: Message,
  { outcome, status, duration }: SendResult,
  attempt: number,
  now: number,
): WebhookAttempt => ({ id: newId(now), eventId, type, attempt, at: now, duration, status, outcome })

/** Decrypts a target, and encrypts it again if its key is a former one. @returns `null` if it cannot be decrypted. */
const readTarget = async (
  { keyring, logger, store }: WebhooksDeps,
  id: string,
  encrypted: string,
): Promise<WebhookTarget | null> => {
  try {
    const { target, isOutdated } = decryptTarget(keyring(), id, encrypted)
    if (isOutdated) await store.replaceTarget(id, encrypted, encryptTarget(keyring(), id, target))
    return target
  } catch (err) {
    if (!(err instanceof DecryptionError)) throw err
    logger.error({ err, webhook: id }, 'the secret of a webhook cannot be decrypted, nothing is sent to it')
    return null
  }
}

interface NotDelivered {
  readonly message: Message
  readonly result: SendResult
}

/** The deliveries of one webhook for as long as this process has it. */
class Delivery {
  readonly #shared: Shared
  readonly #webhook: Deliverable
  readonly #leaseExpiresAt: number
  readonly #endsAt = performance.now() + HOLD
  #storedAt = performance.now()
  #position: LogPosition
  #failures: number
  #failedEventId: string | null
  #attempts: WebhookAttempt[] = []
  #failed: NotDelivered | null = null

  constructor(shared: Shared, webhook: Deliverable, leaseExpiresAt: number) {
    this.#shared = shared
    this.#webhook = webhook
    this.#leaseExpiresAt = leaseExpiresAt
    this.#position = webhook.cursor.position
    this.#failures = webhook.failures
    this.#failedEventId = webhook.failedEventId
  }

  /** Delivers what there is. Then another process may take the webhook. @throws errors of the store. */
  async run(): Promise<void> {
    const { deps } = this.#shared
    try {
      await this.#resume()
      const target = await readTarget(deps, this.#webhook.id, this.#webhook.target)
      if (target === null) return await this.#store({ retryAt: deps.clock() + UNREADABLE_RETRY })
      while (await this.#deliverPage(target));
      if (this.#failed === null) await this.#store({})
      else await this.#fail(this.#failed, target)
    } catch (error) {
      if (!(error instanceof LeaseLost)) throw error
    }
  }

  /** The cursor in the positions of this store: a copy of the database into another engine has other ones. */
  async #resume(): Promise<void> {
    const { eventLog } = this.#shared.deps
    const { kind, position } = this.#webhook.cursor
    if (kind !== eventLog.positionKind)
      this.#position = (await eventLog.findPosition(position.id)) ?? LOG_START
  }

  get #hasTime(): boolean {
    const { signal, isHeld } = this.#shared
    return performance.now() < this.#endsAt && !signal.aborted && isHeld(this.#webhook)
  }

  /** @returns whether to go on. */
  async #deliverPage(target: WebhookTarget): Promise<boolean> {
    const { eventLog } = this.#shared.deps
    const query = { filter: {}, after: this.#position, limit: PAGE }
    const { events, positions, next } = await eventLog.follow(query)
    for (const [index, event] of events.entries()) {
      const wasFailing = this.#failedEventId !== null
      if (!(await this.#deliverEvent(event, target))) return false
      this.#position = positions[index] ?? next
      // At once where an event fails no more: nobody may skip it then.
      const isRecovered = wasFailing && this.#failedEventId === null
      if (isRecovered || performance.now() - this.#storedAt >= STORE_INTERVAL)
        await this.#store({ isHeld: true })
    }
    this.#position = next
    if (events.length < PAGE) await this.#waitForEvents()
    return this.#hasTime
  }

  /** @returns whether the cursor may pass the event. */
  async #deliverEvent(event: AuditEvent<string | null>, target: WebhookTarget): Promise<boolean> {
    const { deps, sender, attempts } = this.#shared
    const { types } = this.#webhook
    if (types !== null && !types.includes(event.type)) return true
    if (!this.#hasTime) return false
    // The event that failed is gone from the log, or the types leave it out.
    if (event.id !== this.#failedEventId) this.#failures = 0
    const message = messageOf(serializeEvent(event))
    const result = await sender.send(message, target, attempts)
    if (result === null) return false
    deps.metrics.gatehouse_webhook_attempts_total.add({ outcome: result.outcome })
    this.#attempts.push(attemptOf(message, result, this.#failures + 1, deps.clock()))
    if (result.outcome !== 'delivered') {
      this.#failed = { message, result }
      return false
    }
    this.#failures = 0
    this.#failedEventId = null
    return true
  }

  async #waitForEvents(): Promise<void> {
    if (this.#attempts.length > 0) await this.#store({ isHeld: true })
    while (this.#hasTime && !isLater(this.#shared.end(), this.#position)) await sleep(INTERVAL / 2)
  }

  /** Stores a failed attempt, and when the next one begins. */
  async #fail({ message, result }: NotDelivered, { url }: WebhookTarget): Promise<void> {
    const { status, outcome, retryAfter } = result
    const { logger, clock, newEvent, mails, settings } = this.#shared.deps
    const { id } = this.#webhook
    const delay = RETRIES[this.#failures]
    this.#failures += 1
    this.#failedEventId = message.id
    const disabledReason = status === 410 ? 'gone' : delay === undefined ? 'failing' : null
    const failure = { webhook: id, event: message.id, attempt: this.#failures, outcome, status }
    if (disabledReason === null) {
      const wait = Math.max(withJitter(delay ?? 0), retryAfter)
      logger.warn(failure, 'an event was not delivered to a webhook, it is sent again')
      return this.#store({ retryAt: clock() + wait })
    }
    const event = newEvent('webhook.disabled', OPERATOR, null, { webhook: id, reason: disabledReason })
    logger.error({ ...failure, reason: disabledReason }, 'a webhook is disabled')
    await this.#store({ disabledReason, event })
    const { OPERATOR_EMAIL: email } = settings
    if (email !== null)
      mails.send(
        'webhookDisabled',
        { email, locale: null },
        { id, host: new URL(url).host, reason: disabledReason },
      )
  }

  /** @throws {LeaseLost} */
  async #store({
    isHeld = false,
    retryAt = 0,
    disabledReason = null,
    event = null,
  }: {
    /** Whether deliveries go on: otherwise the lease ends. */
    readonly isHeld?: boolean
    readonly retryAt?: number
    readonly disabledReason?: DisabledReason | null
    readonly event?: AuditEvent<null> | null
  }): Promise<void> {
    const { store, eventLog, clock } = this.#shared.deps
    const cursor = { kind: eventLog.positionKind, position: this.#position }
    const failing = { failures: this.#failures, failedEventId: this.#failedEventId, retryAt, disabledReason }
    const leaseExpiresAt = isHeld ? this.#leaseExpiresAt : 0
    const attempts = this.#attempts
    this.#attempts = []
    const isStored = await store.storeProgress(
      this.#webhook,
      { cursor, ...failing, leaseExpiresAt },
      attempts,
      event,
      clock(),
    )
    if (!isStored) throw new LeaseLost()
    this.#storedAt = performance.now()
  }
}

export class Deliveries {
  readonly #shared: Shared
  readonly #lease: number
  /** What is under way, by webhook. */
  readonly #deliveries = new Map<string, Promise<void>>()
  readonly #pings = new Map<string, Promise<void>>()
  #end: LogPosition = LOG_START
  /** The fencing number of each webhook. */
  #fences: ReadonlyMap<string, number> = new Map()
  #measuredAt = Number.NEGATIVE_INFINITY
  readonly #measured = new Set<string>()

  constructor(deps: WebhooksDeps, signal: AbortSignal) {
    const { openHttpClient, ed25519Signer, clock, settings } = deps
    const { WEBHOOK_ALLOWED_HOSTS: allowedHosts, WEBHOOK_TIMEOUT: timeLimit } = settings
    const sender = new Sender({
      client: openHttpClient({ allowedHosts, maxConnections: MAX_CONNECTIONS }),
      ed25519: ed25519Signer(),
      clock,
      timeLimit,
    })
    const isHeld = ({ id, fence }: HeldWebhook): boolean =>
      (this.#fences.get(id) ?? Number.POSITIVE_INFINITY) <= fence
    const attempts = new AbortController()
    signal.addEventListener('abort', () => setTimeout(() => attempts.abort(), GRACE))
    this.#shared = { deps, sender, signal, attempts: attempts.signal, end: () => this.#end, isHeld }
    this.#lease = HOLD + timeLimit + LEASE_MARGIN
  }

  /** Delivers until the signal is aborted, and then stores how far each webhook is. */
  async run(): Promise<void> {
    const { signal, deps } = this.#shared
    try {
      for (;;) {
        const hasWebhooks = await this.#look().catch(err => {
          // Deliveries that are under way, one of which may last long, must not hold back the next look.
          deps.logger.warn({ err }, 'webhooks could not be read, deliveries wait')
          return false
        })
        await sleep(hasWebhooks ? INTERVAL : IDLE_INTERVAL, undefined, { ref: false, signal })
      }
    } finally {
      await Promise.all([...this.#deliveries.values(), ...this.#pings.values()])
    }
  }

  /** @returns whether there are webhooks. */
  async #look(): Promise<boolean> {
    const { store, eventLog, clock } = this.#shared.deps
    const webhooks = await store.listWebhookStates()
    this.#fences = new Map(webhooks.map(({ id, fence }) => [id, fence]))
    this.#forgetMeasured()
    if (webhooks.length === 0) return false
    this.#end = await eventLog.end()
    for (const webhook of webhooks) {
      const { id, pingId } = webhook
      if (pingId !== '') this.#start(this.#pings, id, () => this.#ping(id, pingId))
      if (this.#isDue(webhook, clock())) this.#start(this.#deliveries, id, () => this.#take(id))
    }
    if (performance.now() - this.#measuredAt >= MEASURE_INTERVAL) await this.#measure(webhooks)
    return true
  }

  #isDue({ isEnabled, cursor, retryAt, leaseExpiresAt }: WebhookState, now: number): boolean {
    const isHeld = leaseExpiresAt > now && leaseExpiresAt <= now + 10 * this.#lease
    if (!isEnabled || isHeld || retryAt > now) return false
    return cursor.kind !== this.#shared.deps.eventLog.positionKind || isLater(this.#end, cursor.position)
  }

  /** Starts deliveries that are not under way. A failure of the store is repeated by the next look. */
  #start(running: Map<string, Promise<void>>, id: string, run: () => Promise<void>): void {
    if (running.has(id)) return
    const { logger } = this.#shared.deps
    const work = run()
      .catch(err => logger.warn({ err, webhook: id }, 'a webhook could not be delivered, it is tried again'))
      .finally(() => running.delete(id))
    running.set(id, work)
  }

  async #take(id: string): Promise<void> {
    const { store, clock } = this.#shared.deps
    const now = clock()
    const taken = await store.takeWebhook(id, now, this.#lease)
    if (taken !== null) await new Delivery(this.#shared, taken, now + this.#lease).run()
  }

  async #ping(id: string, pingId: string): Promise<void> {
    const { deps, sender, attempts } = this.#shared
    const { store, clock, metrics } = deps
    const encrypted = await store.takePing(id, pingId)
    const target = encrypted === null ? null : await readTarget(deps, id, encrypted)
    if (target === null) return
    const message = pingOf(pingId, clock())
    const result = await sender.send(message, target, attempts)
    if (result === null) return
    metrics.gatehouse_webhook_attempts_total.add({ outcome: result.outcome })
    await store.addAttempt(id, attemptOf(message, result, 1, clock()))
  }

  /** Resets the metrics of webhooks without waiting events. Those of a deleted webhook would keep their last values. */
  #forgetMeasured(): void {
    const { metrics } = this.#shared.deps
    for (const webhook of this.#measured) {
      if (this.#fences.has(webhook)) continue
      this.#measured.delete(webhook)
      metrics.gatehouse_webhook_lag_seconds.set(0, { webhook })
      metrics.gatehouse_webhook_waiting_events.set(0, { webhook })
    }
  }

  async #measure(webhooks: readonly WebhookState[]): Promise<void> {
    const { eventLog, clock, metrics } = this.#shared.deps
    this.#measuredAt = performance.now()
    for (const { id, isEnabled, cursor } of webhooks) {
      const isWaiting =
        isEnabled && cursor.kind === eventLog.positionKind && isLater(this.#end, cursor.position)
      const page = isWaiting ? await eventLog.follow({ filter: {}, after: cursor.position, limit: 1 }) : null
      const next = page?.events[0]
      const lag = next === undefined ? 0 : Math.max(0, clock() - next.at) / SECOND
      this.#measured.add(id)
      metrics.gatehouse_webhook_lag_seconds.set(lag, { webhook: id })
      const waiting = next === undefined ? 0 : await eventLog.countAfter(cursor.position, COUNTED)
      metrics.gatehouse_webhook_waiting_events.set(waiting, { webhook: id })
    }
  }
}
