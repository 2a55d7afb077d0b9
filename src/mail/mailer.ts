/** Sends mails of declared kinds, see {@link MailKind}. */
import { newId } from '../ids.ts'
import { type DeliveryLimits, type DeliveryLog, DeliveryQueue } from './delivery-queue.ts'
import type { MailKinds, MailSender, MailSite, MailValues } from './kinds.ts'
import { compose } from './templates.ts'
import { FileTransport, SmtpTransport, type Transport } from './transports.ts'

type Limits = Omit<DeliveryLimits, 'closing'>

/** No mail is retried for longer than the shortest-lived link works, one hour. */
const LIMITS: Limits = {
  capacity: 10_000,
  concurrency: 4,
  firstDelay: 5_000,
  maxDelay: 600_000,
  maxAge: 3_600_000,
}

export interface MailSettings {
  /** `smtp://…` or `smtps://…`; `null`: mails become files in `folder`. */
  readonly url: string | null
  readonly from: string
  readonly folder: string
}

export interface MailerDeps extends Omit<MailSite, 'host'> {
  readonly log: DeliveryLog
  readonly mail: MailSettings
  /** The longest duration of `close`, in milliseconds. */
  readonly closing: number
  /** Override the defaults. */
  readonly limits?: Partial<Limits>
}

/** For `MAIL_URL=off`. */
export const NO_MAILS: MailSender<MailKinds> = { send: () => undefined }

/** Queues mails in memory; composes and sends them after the caller has returned. */
export class Mailer<Kinds extends MailKinds> implements MailSender<Kinds> {
  readonly #kinds: Kinds
  readonly #site: MailSite
  readonly #queue: DeliveryQueue
  readonly #transport: Transport

  constructor(kinds: Kinds, deps: MailerDeps) {
    const { publicUrl, webUrl, closing } = deps
    const { url, from, folder } = deps.mail
    this.#kinds = kinds
    this.#site = { host: new URL(publicUrl).host, publicUrl, webUrl }
    this.#queue = new DeliveryQueue({ ...LIMITS, ...deps.limits, closing }, deps.log)
    this.#transport =
      url === null
        ? new FileTransport(folder, from, file => deps.log.info(`a mail was written to ${file}`))
        : new SmtpTransport(url, from)
  }

  send<Name extends keyof Kinds & string>(name: Name, to: string, ...values: MailValues<Kinds[Name]>): void {
    const kind: Kinds[Name] = this.#kinds[name]
    const message = { id: newId(), date: new Date(), to }
    this.#queue.add(name, () => this.#transport.send({ ...message, ...compose(kind, this.#site, values) }))
  }

  /** Tries once more to send each waiting mail, for at most `closing`, logs how many mails were not sent, and closes connections. */
  async close(): Promise<void> {
    await this.#queue.close(() => this.#transport.close())
  }
}
