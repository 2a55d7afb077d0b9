/** What is sent, and what sends it. */

import { mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { SendMailOptions, Transporter } from 'nodemailer'

export interface Content {
  readonly subject: string
  readonly text: string
  readonly html: string
}

export interface Message extends Content {
  /** A UUIDv7: the same at every attempt, so that a mailbox that has the message already can see it. */
  readonly id: string
  readonly date: Date
  readonly to: string
}

export interface Transport {
  /** @throws {Error} when the message could not be handed over; failures.ts says whether another attempt makes sense. */
  send(message: Message): Promise<void>
  /** Lets go of connections: what is under way fails. */
  close(): void
}

/** What nodemailer makes a message of. The recipient is an object: text would be parsed, and can name several. */
export const mailOptions = (
  from: string,
  { id, date, to, subject, text, html }: Message,
): SendMailOptions => ({
  from,
  to: { name: '', address: to },
  date,
  messageId: `<${id}@${/@([^@>]+)>?$/.exec(from)?.[1] ?? 'localhost'}>`,
  subject,
  text,
  html,
  // No out-of-office replies (RFC 3834 §5).
  headers: { 'Auto-Submitted': 'auto-generated' },
})

/** Without an SMTP server each mail becomes a file, to be read by whoever runs the service. */

/** For its owner alone: mails carry tokens. */
const FOLDER_MODE = 0o700
const FILE_MODE = 0o600

export class FileTransport implements Transport {
  readonly #folder: string
  readonly #from: string
  readonly #onWritten: (file: string) => void

  constructor(folder: string, from: string, onWritten: (file: string) => void) {
    this.#folder = folder
    this.#from = from
    this.#onWritten = onWritten
  }

  async send(message: Message): Promise<void> {
    const { createTransport } = await import('nodemailer')
    const composer = createTransport({ streamTransport: true, buffer: true })
    const { message: bytes } = await composer.sendMail(mailOptions(this.#from, message))
    // The timestamp is for people, the id makes the name unique and orders what has the same timestamp.
    const name = `${message.date.toISOString().replaceAll(':', '-')}-${message.id}.eml`
    const file = join(this.#folder, name)
    await mkdir(this.#folder, { recursive: true, mode: FOLDER_MODE })
    await this.#write(file, bytes as Buffer)
    this.#onWritten(file)
  }

  close(): void {}

  /** Whoever watches the folder for `.eml` never meets half of one. */
  async #write(file: string, bytes: Buffer): Promise<void> {
    const draft = `${file}.tmp`
    try {
      const handle = await open(draft, 'w', FILE_MODE)
      try {
        await handle.writeFile(bytes)
      } finally {
        await handle.close()
      }
      await rename(draft, file)
    } catch (error) {
      await rm(draft, { force: true })
      throw error
    }
  }
}

/** Mails go to an SMTP server. nodemailer is loaded with the first one: most processes start and idle without. */

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
