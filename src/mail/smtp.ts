/** Mails go to an SMTP server. nodemailer is loaded with the first one: most processes start and idle without. */
import type { Transporter } from 'nodemailer'
import { mailOptions } from './mail-options.ts'
import type { Message, Transport } from './message.ts'

/** Milliseconds; `MAIL_URL` can say otherwise. nodemailer would wait for minutes, and hold up the mails behind. */
const TIMEOUTS = {
  dnsTimeout: 10_000,
  connectionTimeout: 10_000,
  greetingTimeout: 10_000,
  socketTimeout: 30_000,
}

export class SmtpTransport implements Transport {
  readonly #url: string
  readonly #from: string
  #pool: Promise<Transporter> | null = null
  #closed = false

  constructor(url: string, from: string) {
    this.#url = url
    this.#from = from
  }

  async send(message: Message): Promise<void> {
    this.#pool ??= this.#open()
    const pool = await this.#pool
    // A pool that is used once more after it was closed would open another connection, and nobody would close it.
    if (this.#closed) throw new Error('closed')
    await pool.sendMail(mailOptions(this.#from, message))
  }

  close(): void {
    this.#closed = true
    this.#pool?.then(
      pool => pool.close({ force: true }),
      () => undefined,
    )
  }

  async #open(): Promise<Transporter> {
    const { createTransport } = await import('nodemailer')
    return createTransport({
      ...TIMEOUTS,
      url: this.#url,
      pool: true,
      // The delivery queue repeats what fails, nobody else does.
      maxRequeues: 0,
      // A server that does not hang up would keep the process alive for five seconds.
      socketCloseTimeout: 0,
    })
  }
}
