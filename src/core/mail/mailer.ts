/** Sends mails of declared kinds, see {@link MailKind}. */
import { newId } from '#base/ids'
import { type ComposerDeps, MailComposer } from './composer.ts'
import {
  type DeliveryLimits,
  type DeliveryLog,
  DeliveryQueue,
  type DeliveryStatistics,
} from './delivery-queue.ts'
import type { MailKinds, MailRecipient, MailSender, MailValues } from './kinds.ts'
import { type Content, type MailSettings, openTransport, type Transport } from './transports.ts'

type Limits = Omit<DeliveryLimits, 'closing'>

/** No mail is retried for longer than the shortest-lived link works, one hour. */
const LIMITS: Limits = {
  capacity: 10_000,
  concurrency: 4,
  firstDelay: 5_000,
  maxDelay: 600_000,
  maxAge: 3_600_000,
}

export interface MailerDeps extends ComposerDeps {
  readonly log: DeliveryLog
  readonly mail: MailSettings
  /** The longest duration of `close`, in milliseconds. */
  readonly closing: number
  readonly limits?: Partial<Limits>
}

/** Sends no mails (`MAIL_URL=off`). */
export const NO_MAILS: MailSender<MailKinds> = { send: () => undefined }

/** Queues mails in memory; composes and sends them after the caller has returned. */
export class Mailer<Kinds extends MailKinds> implements MailSender<Kinds> {
  readonly #kinds: Kinds
  readonly #composer: MailComposer<Kinds>
  readonly #queue: DeliveryQueue
  readonly #transport: Transport

  constructor(kinds: Kinds, deps: MailerDeps) {
    const { log, mail, closing, limits } = deps
    this.#kinds = kinds
    this.#composer = new MailComposer(kinds, deps, (err, name) =>
      log.error({ err }, `the template of a mail failed, the built-in text is sent (${name})`),
    )
    this.#queue = new DeliveryQueue({ ...LIMITS, ...limits, closing }, log)
    this.#transport = openTransport(mail, file => log.info(`a mail was written to ${file}`))
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
      content ??= this.#composer.compose(name, locale, values)
      return this.#transport.send({ ...message, ...content })
    })
  }

  /** Sends a mail with the example of its kind at once, and only once. @returns its subject. @throws {Error} of the transport */
  async sendExample(name: keyof Kinds & string, { email, locale }: MailRecipient): Promise<string> {
    const content = this.#composer.compose(name, locale, [this.#kinds[name]?.example])
    await this.#transport.send({ ...content, id: newId(), date: new Date(), to: email })
    return content.subject
  }

  /** Tries once more to send each waiting mail, for at most `closing`, logs how many mails were not sent, and closes connections. */
  async close(): Promise<void> {
    await this.#queue.close(() => this.#transport.close())
  }
}
