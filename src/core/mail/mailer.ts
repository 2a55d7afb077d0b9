/** Sends mails of declared kinds, see {@link MailKind}. */
import { newId } from '#base/ids'
import { Languages } from '#base/texts'
import {
  type DeliveryLimits,
  type DeliveryLog,
  DeliveryQueue,
  type DeliveryStatistics,
} from './delivery-queue.ts'
import { DEFAULT_BRAND, type MailBrand } from './frame.ts'
import type { MailKinds, MailRecipient, MailSender, MailSite, MailTemplate, MailValues } from './kinds.ts'
import { compose, composeFrom } from './templates.ts'
import { type Content, FileTransport, SmtpTransport, type Transport } from './transports.ts'

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

type Templates = Readonly<Record<string, MailTemplate | undefined>>

export interface MailerDeps extends Omit<MailSite, 'host' | 'name'> {
  readonly productName: string
  readonly templates?: Templates | undefined
  readonly log: DeliveryLog
  readonly mail: MailSettings
  /** The longest duration of `close`, in milliseconds. */
  readonly closing: number
  readonly limits?: Partial<Limits>
  readonly languages?: Languages
  readonly brand?: MailBrand
}

/** Sends no mails (`MAIL_URL=off`). */
export const NO_MAILS: MailSender<MailKinds> = { send: () => undefined }

/** Queues mails in memory; composes and sends them after the caller has returned. */
export class Mailer<Kinds extends MailKinds> implements MailSender<Kinds> {
  readonly #kinds: Kinds
  readonly #site: MailSite
  readonly #templates: Templates
  readonly #languages: Languages
  readonly #brand: MailBrand
  readonly #log: DeliveryLog
  readonly #queue: DeliveryQueue
  readonly #transport: Transport

  constructor(kinds: Kinds, deps: MailerDeps) {
    const { publicUrl, webUrl, accountUrl, productName, templates = {}, closing } = deps
    const { url, from, folder } = deps.mail
    this.#kinds = kinds
    const { host } = new URL(publicUrl)
    this.#site = { name: productName, host, publicUrl, webUrl, accountUrl }
    this.#templates = templates
    this.#languages = deps.languages ?? new Languages()
    this.#brand = deps.brand ?? DEFAULT_BRAND
    this.#log = deps.log
    this.#queue = new DeliveryQueue({ ...LIMITS, ...deps.limits, closing }, deps.log)
    this.#transport =
      url === null
        ? new FileTransport(folder, from, file => deps.log.info(`a mail was written to ${file}`))
        : new SmtpTransport(url, from)
  }

  get statistics(): DeliveryStatistics {
    return this.#queue.statistics
  }

  send<Name extends keyof Kinds & string>(
    name: Name,
    { email, locale }: MailRecipient,
    ...values: MailValues<Kinds[Name]>
  ): void {
    const message = { id: newId(), date: new Date(), to: email }
    let content: Content | undefined
    this.#queue.add(name, () => {
      content ??= this.#compose(name, locale, values)
      return this.#transport.send({ ...message, ...content })
    })
  }

  #compose(name: keyof Kinds & string, locale: string | null, values: readonly unknown[]): Content {
    const kind = this.#kinds[name] as Kinds[string]
    const template = this.#templates[name]
    if (template !== undefined) {
      try {
        return composeFrom(template, kind, { ...this.#site, locale }, values)
      } catch (error) {
        const err = error instanceof Error ? error : new Error(String(error))
        this.#log.error({ err }, `the template of a mail failed, the built-in text is sent (${name})`)
      }
    }
    const context = { site: this.#site, languages: this.#languages, brand: this.#brand }
    return compose(name, kind, context, locale, values)
  }

  /** Tries once more to send each waiting mail, for at most `closing`, logs how many mails were not sent, and closes connections. */
  async close(): Promise<void> {
    await this.#queue.close(() => this.#transport.close())
  }
}
