/** The limit on mails to one recipient, by address: accounts are cheap to open, and any address can be entered. */

import type { OpenRateLimit, RateLimit } from '#storage/rate-limit'
import { digestKey, type WindowLimit } from '../rate-limits/limits.ts'
import type { MailKinds, MailRecipient, MailSender, MailValues } from './kinds.ts'

export interface RateLimitedMailerDeps<Kinds extends MailKinds> {
  readonly kinds: Kinds
  readonly mails: MailSender<Kinds>
  readonly openRateLimit: OpenRateLimit
  readonly limit: WindowLimit
  readonly onDropped: () => void
}

export class RateLimitedMailer<Kinds extends MailKinds> implements MailSender<Kinds> {
  readonly #deps: RateLimitedMailerDeps<Kinds>
  readonly #limit: RateLimit
  readonly #pending = new Set<Promise<void>>()

  constructor(deps: RateLimitedMailerDeps<Kinds>) {
    this.#deps = deps
    this.#limit = deps.openRateLimit({ ...deps.limit, name: 'mails', final: true })
  }

  send<Name extends keyof Kinds & string>(
    name: Name,
    to: MailRecipient,
    ...values: MailValues<Kinds[Name]>
  ): void {
    const { kinds, mails, onDropped } = this.#deps
    const isRateLimited = kinds[name]?.isRateLimited ?? false
    if (isRateLimited === false) return mails.send(name, to, ...values)
    const done = this.#limit
      .consume(digestKey(isRateLimited === 'alone' ? `${name} ${to.email}` : to.email))
      .then(({ allowed }) => (allowed ? mails.send(name, to, ...values) : onDropped()))
      .finally(() => this.#pending.delete(done))
    this.#pending.add(done)
  }

  /** Waits until every mail is counted. Call it before the mailer beneath is closed. */
  async counted(): Promise<void> {
    await Promise.all(this.#pending)
  }
}
