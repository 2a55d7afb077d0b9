import type { Mails } from '../accounts/mails.ts'
import { newId } from '../ids.ts'
import { type DeliveryLimits, type DeliveryLog, DeliveryQueue } from './delivery-queue.ts'
import { type Places, type Templates, templates } from './templates.ts'
import { type Content, FileTransport, type MailKind, SmtpTransport, type Transport } from './transports.ts'

const nothing = (): void => undefined

/** For `MAIL_URL=off`: nobody is mailed anything. */
export const NO_MAILS: Mails = {
  verification: nothing,
  newEmail: nothing,
  emailChangeRequested: nothing,
  emailChanged: nothing,
  passwordReset: nothing,
  passwordChanged: nothing,
  accountExists: nothing,
  accountDeleted: nothing,
}

/** The mails of {@link Mails}: queued in memory, composed and sent after the caller has returned. */

/** A link for another password is of no use after an hour, so no mail is tried for longer. */
const LIMITS: DeliveryLimits = {
  capacity: 10_000,
  concurrency: 4,
  firstDelay: 5_000,
  maxDelay: 600_000,
  patience: 3_600_000,
  // With the ten seconds that requests in flight have, less than what the server gives itself to stop.
  closing: 3_000,
}

export interface MailSettings {
  /** `smtp://…` or `smtps://…`; `null`: mails become files in `outbox`. */
  readonly url: string | null
  readonly from: string
  readonly outbox: string
}

export interface MailerDeps extends DeliveryLog, Places {
  readonly mail: MailSettings
  /** In place of the usual ones. */
  readonly limits?: Partial<DeliveryLimits>
}

export class Mailer implements Mails {
  readonly #queue: DeliveryQueue
  readonly #transport: Transport
  readonly #templates: Templates

  constructor(parts: MailerDeps) {
    const { url, from, outbox } = parts.mail
    this.#queue = new DeliveryQueue({ ...LIMITS, ...parts.limits }, parts)
    this.#transport =
      url === null
        ? new FileTransport(outbox, from, file => parts.onNotice(`a mail was written to ${file}`))
        : new SmtpTransport(url, from)
    this.#templates = templates(parts)
  }

  verification(to: string, token: string): void {
    this.#send('verification', to, () => this.#templates.verification(token))
  }

  newEmail(to: string, token: string): void {
    this.#send('newEmail', to, () => this.#templates.newEmail(token))
  }

  emailChangeRequested(to: string, newEmail: string): void {
    this.#send('emailChangeRequested', to, () => this.#templates.emailChangeRequested(newEmail))
  }

  emailChanged(to: string, newEmail: string): void {
    this.#send('emailChanged', to, () => this.#templates.emailChanged(newEmail))
  }

  passwordReset(to: string, token: string): void {
    this.#send('passwordReset', to, () => this.#templates.passwordReset(token))
  }

  passwordChanged(to: string): void {
    this.#send('passwordChanged', to, this.#templates.passwordChanged)
  }

  accountExists(to: string, token: string): void {
    this.#send('accountExists', to, () => this.#templates.accountExists(token))
  }

  accountDeleted(to: string): void {
    this.#send('accountDeleted', to, this.#templates.accountDeleted)
  }

  /** Tries for a few seconds to send what waits, says how many mails were not sent, and lets go of connections. */
  async close(): Promise<void> {
    await this.#queue.close(() => this.#transport.close())
  }

  #send(kind: MailKind, to: string, compose: () => Content): void {
    const message = { id: newId(), date: new Date(), to }
    this.#queue.add(kind, () => this.#transport.send({ ...message, ...compose() }))
  }
}
