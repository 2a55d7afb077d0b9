/** Webhooks: what administrators do with them. `deliveries.ts` sends the events. */

import { type HttpClient, HttpRequestError } from '#base/http-client/http-client'
import { type Actor, firstIdAt, newId, ServiceError } from '#feature/declaration'
import { DecryptionError } from '#feature/encryption/keyring'
import { isTimestamp } from '#http/validation/formats'
import { ERRORS, type WebhooksDeps } from './definitions.ts'
import { newSecret, shownPublicKey } from './signature.ts'
import type { Cursor, Skip, WebhookOptions } from './stored-webhooks.ts'
import { decryptTarget, encryptTarget } from './targets.ts'
import type { Webhook, WebhookAttempt, WebhookTarget } from './webhook.ts'

/** How long a secret signs beside the one that follows it, in milliseconds. */
const ROTATION = 86_400_000

export interface NewWebhook {
  readonly url: string
  /** `null`: all. */
  readonly types: readonly string[] | null
  readonly description: string | null
}

export interface CreatedWebhook {
  readonly webhook: Webhook
  /** Shown once. */
  readonly secret: string
}

export interface RotatedSecret {
  /** Shown once. */
  readonly secret: string
  /** When the former secret signs no more: milliseconds since the epoch. */
  readonly formerExpiresAt: number
}

export interface Replay {
  readonly webhook: Webhook
  /** Events before it may have been removed, by `EVENTS_KEPT`; `null`: it is before the beginning. */
  readonly removedBefore: number | null
}

/** The part of a URL that is no secret. */
const withoutQuery = ({ origin, pathname }: URL): string => origin + pathname

/** Former secrets that sign: a header has a limited length. */
const MAX_FORMER = 5

/** A URL drops tabs and line breaks. */
const CONTROL = /[\s\p{Cc}]/u

/** UUIDv7, as events have it. */
const EVENT_ID = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i

/** @throws {ServiceError} `webhookNotFound` */
const found = (isFound: boolean): void => {
  if (!isFound) throw new ServiceError(ERRORS.webhookNotFound)
}

export class Webhooks {
  readonly #deps: WebhooksDeps
  readonly #client: HttpClient

  constructor(deps: WebhooksDeps) {
    this.#deps = deps
    this.#client = deps.openHttpClient({
      allowedHosts: deps.settings.WEBHOOK_ALLOWED_HOSTS,
      maxConnections: 1,
    })
  }

  /** Verifies `v1a` signatures: `whpk_` and base64; `null` unless the service signs tokens with EdDSA, and on the command line. */
  get publicKey(): string | null {
    const signer = this.#deps.ed25519Signer()
    return signer && shownPublicKey(signer)
  }

  /**
   * Creates a webhook, which gets every event from now on.
   * @throws {ServiceError} `webhookUrlInvalid`, `webhookUrlBlocked`, `webhookUrlUnresolved`, `encryptionKeyMissing`, `tooManyWebhooks`
   */
  async create({ url, types, description }: NewWebhook, actor: Actor): Promise<CreatedWebhook> {
    const { store, eventLog, clock, newEvent } = this.#deps
    const shownUrl = await this.#checked(url)
    const now = clock()
    const id = newId(now)
    const secret = newSecret()
    const target = this.#encrypted(id, { url, secrets: [{ text: secret, expiresAt: null }] })
    const event = newEvent('webhook.created', actor, null, { webhook: id })
    const cursor = { kind: eventLog.positionKind, position: await eventLog.end() }
    const options = { url: shownUrl, types, description, target }
    if ((await store.addWebhook(id, options, cursor, event)) !== 'added')
      throw new ServiceError(ERRORS.tooManyWebhooks)
    return { webhook: await this.get(id), secret }
  }

  /** All webhooks, in the order of their creation. */
  async list(): Promise<readonly Webhook[]> {
    return this.#deps.store.listWebhooks()
  }

  /** @throws {ServiceError} `webhookNotFound` */
  async get(id: string): Promise<Webhook> {
    return (await this.#find(id)).webhook
  }

  /**
   * Changes what is given.
   * @throws {ServiceError} `webhookNotFound`, `webhookUrlInvalid`, `webhookUrlBlocked`, `webhookUrlUnresolved`, `webhookSecretUnreadable`,
   * `encryptionKeyMissing`, `webhookChanged`
   */
  async change(id: string, change: Partial<NewWebhook>, actor: Actor): Promise<Webhook> {
    const { webhook, encrypted } = await this.#find(id)
    const { url, types = webhook.types, description = webhook.description } = change
    const shownUrl = url === undefined ? webhook.url : await this.#checked(url)
    const target = this.#decrypted(id, encrypted)
    const changed = { ...target, url: url ?? target.url }
    const options = { url: shownUrl, types, description, target: this.#encrypted(id, changed) }
    await this.#change(id, encrypted, options, 'webhook.changed', actor)
    return this.get(id)
  }

  /** @throws {ServiceError} `webhookNotFound` */
  async remove(id: string, actor: Actor): Promise<void> {
    const { store, newEvent } = this.#deps
    found(await store.removeWebhook(id, newEvent('webhook.deleted', actor, null, { webhook: id })))
  }

  /** Replaces the secret. The previous one signs for another day. @throws {ServiceError} `webhookNotFound`, `webhookSecretUnreadable`, `webhookChanged` */
  async rotateSecret(id: string, actor: Actor): Promise<RotatedSecret> {
    const { clock } = this.#deps
    const { webhook, encrypted } = await this.#find(id)
    const target = this.#decrypted(id, encrypted)
    const now = clock()
    const secret = newSecret()
    const formerExpiresAt = now + ROTATION
    const [current, ...older] = target.secrets
    const former = [...(current === undefined ? [] : [{ ...current, expiresAt: formerExpiresAt }]), ...older]
    const valid = former.filter(({ expiresAt }) => expiresAt !== null && expiresAt > now).slice(0, MAX_FORMER)
    const secrets = [{ text: secret, expiresAt: null }, ...valid]
    const { url, types, description } = webhook
    const options = { url, types, description, target: this.#encrypted(id, { ...target, secrets }) }
    await this.#change(id, encrypted, options, 'webhook.secret-rotated', actor)
    return { secret, formerExpiresAt }
  }

  /**
   * Sends a message without an event, soon, also to a webhook that is paused or disabled. The result is among the attempts.
   * @returns the id of the message.
   * @throws {ServiceError} `webhookNotFound`
   */
  async ping(id: string): Promise<string> {
    const { store, clock } = this.#deps
    const pingId = newId(clock())
    found(await store.requestPing(id, pingId))
    return pingId
  }

  /** Its events wait. @throws {ServiceError} `webhookNotFound` */
  async pause(id: string, actor: Actor): Promise<Webhook> {
    const { store, newEvent } = this.#deps
    found(await store.pauseWebhook(id, newEvent('webhook.paused', actor, null, { webhook: id })))
    return this.get(id)
  }

  /**
   * Delivers what waits, at once, also to a webhook that is disabled.
   * @param skip leaves out the event that fails.
   * @throws {ServiceError} `webhookNotFound`, `webhookNotFailing`
   */
  async resume(id: string, skip: boolean, actor: Actor): Promise<Webhook> {
    const { store, newEvent } = this.#deps
    const skipped = skip ? await this.#skip(id) : null
    const details = { webhook: id, ...(skipped !== null && { skipped: skipped.eventId }) }
    const event = newEvent('webhook.resumed', actor, null, details)
    if (!(await store.resumeWebhook(id, skipped, event))) {
      await this.get(id)
      throw new ServiceError(ERRORS.webhookNotFailing)
    }
    return this.get(id)
  }

  /**
   * Sets the cursor, forward or back: deliveries begin with the events of a time, or with an event.
   * @param from a timestamp, or the id of an event.
   * @throws {ServiceError} `replayFromInvalid`, `webhookNotFound`
   */
  async replay(id: string, from: string, actor: Actor): Promise<Replay> {
    const { store, newEvent, clock, config } = this.#deps
    const firstId = this.#firstId(from)
    const cursor = await this.#cursorBefore(firstId)
    const event = newEvent('webhook.replayed', actor, null, { webhook: id, from })
    found(await store.replayWebhook(id, cursor, event))
    const kept = clock() - config.eventsKept
    return { webhook: await this.get(id), removedBefore: firstId < firstIdAt(kept) ? kept : null }
  }

  /** Newest first. @throws {ServiceError} `webhookNotFound` */
  async attempts(id: string): Promise<readonly WebhookAttempt[]> {
    const { webhook } = await this.#find(id)
    return this.#deps.store.listAttempts(webhook.id)
  }

  /** @throws {ServiceError} `webhookNotFound` */
  async #find(id: string): Promise<{ webhook: Webhook; encrypted: string }> {
    const stored = await this.#deps.store.findWebhook(id)
    if (stored === undefined) throw new ServiceError(ERRORS.webhookNotFound)
    return { webhook: stored.webhook, encrypted: stored.target }
  }

  /** @throws {ServiceError} `webhookNotFound`, `webhookNotFailing` */
  async #skip(id: string): Promise<Skip> {
    const { eventLog } = this.#deps
    const { failedEventId: eventId } = await this.get(id)
    if (eventId === null) throw new ServiceError(ERRORS.webhookNotFailing)
    // Without the event, which the log has removed, nothing is left to skip.
    const position = await eventLog.findPosition(eventId)
    return { eventId, cursor: position === undefined ? null : { kind: eventLog.positionKind, position } }
  }

  /** @throws {ServiceError} `webhookChanged` */
  async #change(
    id: string,
    encrypted: string,
    options: WebhookOptions,
    type: 'webhook.changed' | 'webhook.secret-rotated',
    actor: Actor,
  ): Promise<void> {
    const { store, newEvent } = this.#deps
    const event = newEvent(type, actor, null, { webhook: id })
    if (!(await store.changeWebhook(id, encrypted, options, event)))
      throw new ServiceError(ERRORS.webhookChanged)
  }

  /** @returns the URL as it is shown. @throws {ServiceError} `webhookUrlInvalid`, `webhookUrlBlocked`, `webhookUrlUnresolved` */
  async #checked(text: string): Promise<string> {
    const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : null
    if (
      url === null ||
      url.username !== '' ||
      url.password !== '' ||
      text.includes('#') ||
      CONTROL.test(text)
    )
      throw new ServiceError(ERRORS.webhookUrlInvalid)
    try {
      await this.#client.check(url)
    } catch (error) {
      if (!(error instanceof HttpRequestError)) throw error
      const { failure, message: reason } = error
      const found = failure === 'unresolved' ? ERRORS.webhookUrlUnresolved : ERRORS.webhookUrlBlocked
      // Name servers of this machine that fail look like a name without an address.
      throw new ServiceError(found, { logged: { reason } })
    }
    return withoutQuery(url)
  }

  /** @throws {ServiceError} `encryptionKeyMissing` */
  #encrypted(id: string, target: WebhookTarget): string {
    const keyring = this.#deps.keyring()
    if (keyring === null) throw new ServiceError(ERRORS.encryptionKeyMissing)
    return encryptTarget(keyring, id, target)
  }

  /** @throws {ServiceError} `webhookSecretUnreadable` */
  #decrypted(id: string, encrypted: string): WebhookTarget {
    try {
      return decryptTarget(this.#deps.keyring(), id, encrypted).target
    } catch (cause) {
      if (!(cause instanceof DecryptionError)) throw cause
      throw new ServiceError(ERRORS.webhookSecretUnreadable, { cause })
    }
  }

  /** Ids begin with the time. @throws {ServiceError} `replayFromInvalid` */
  #firstId(from: string): string {
    if (isTimestamp(from)) return firstIdAt(Math.max(0, Date.parse(from)))
    if (!EVENT_ID.test(from)) throw new ServiceError(ERRORS.replayFromInvalid)
    return from.toLowerCase()
  }

  async #cursorBefore(firstId: string): Promise<Cursor> {
    const { eventLog } = this.#deps
    const position = (await eventLog.findPositionBefore(firstId)) ?? (await eventLog.end())
    return { kind: eventLog.positionKind, position }
  }
}
