/** Mails that administrators send to see whether and how mails arrive (`POST /admin/mails/test`). */
import { ERRORS, ServiceError } from '#base/errors'
import type { OpenRateLimit, RateLimit } from '#storage/rate-limit'
import { digestKey, type WindowLimit } from '../rate-limits/limits.ts'
import { canBeTried, type MailKind, type MailKinds, type MailRecipient } from './kinds.ts'
import type { Mailer } from './mailer.ts'
import { describeError } from './transport-errors.ts'

export interface TestMailsDeps {
  readonly kinds: MailKinds
  /** `null` with `MAIL_URL=off`. */
  readonly mailer: Mailer<MailKinds> | null
  readonly openRateLimit: OpenRateLimit
  /** `null`: no limit. */
  readonly limit: WindowLimit | null
}

export class TestMails {
  /** The kinds that have an example, or need none. */
  readonly kinds: readonly string[]
  readonly #mailer: Mailer<MailKinds> | null
  readonly #limit: RateLimit | null

  constructor({ kinds, mailer, openRateLimit, limit }: TestMailsDeps) {
    this.kinds = Object.keys(kinds).filter(name => canBeTried(kinds[name] as MailKind))
    this.#mailer = mailer
    this.#limit = limit && openRateLimit({ ...limit, name: 'test-mails', final: true })
  }

  /**
   * Sends one mail with values that are examples, and waits until the server has accepted it. A mail that is refused is not repeated.
   * @returns its subject.
   * @throws {ServiceError} `mailsOff`, `tooManyRequests`; `mailNotSent` with the reason, without what the server said
   */
  async send(kind: string, to: MailRecipient): Promise<string> {
    const mailer = this.#mailer
    if (mailer === null) throw new ServiceError('mailsOff')
    const usage = await this.#limit?.consume(digestKey(to.email))
    if (usage?.allowed === false)
      throw new ServiceError('tooManyRequests', { headers: { 'retry-after': String(usage.seconds) } })
    return mailer.sendExample(kind, to).catch((error: unknown) => {
      const { mailNotSent } = ERRORS
      const message = `${mailNotSent.message}: ${describeError(error)}`
      throw new ServiceError({ ...mailNotSent, message }, { cause: error })
    })
  }
}
