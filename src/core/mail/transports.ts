/** The transports of mails: an SMTP server, or files. */
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { SendMailOptions, Transporter } from 'nodemailer'
import { logoAttachment } from './frame.ts'

export interface Content {
  readonly subject: string
  readonly text: string
  readonly html: string
  /** A PNG that the HTML refers to. */
  readonly logo?: Buffer
}

export interface Message extends Content {
  /** A UUIDv7. It is the same for every attempt, so that mailboxes can detect duplicates. */
  readonly id: string
  readonly date: Date
  readonly to: string
}

export interface Transport {
  /** @throws {Error} when the message is not accepted; `isPermanent` says whether to retry. */
  send(message: Message): Promise<void>
  /** Closes connections. Running attempts fail. */
  close(): void
}

/** A mail for nodemailer. The recipient is an object: text would be parsed, and can contain several addresses. */
export const mailOptions = (
  from: string,
  { id, date, to, subject, text, html, logo }: Message,
): SendMailOptions => ({
  from,
  to: { name: '', address: to },
  date,
  messageId: `<${id}@${/@([^@>]+)>?$/.exec(from)?.[1] ?? 'localhost'}>`,
  subject,
  text,
  html,
  ...(logo && { attachments: [logoAttachment(logo)] }),
  // No out-of-office replies (RFC 3834 §5).
  headers: { 'Auto-Submitted': 'auto-generated' },
})

/** Modes of the folder and files of mails. Only the owner can read them: mails contain tokens. */
const FOLDER_MODE = 0o700
const FILE_MODE = 0o600

/** Writes each mail to a file, for a service without an SMTP server. */
class FileTransport implements Transport {
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
    // The id makes the name unique and sorts mails of the same millisecond.
    const name = `${message.date.toISOString().replaceAll(':', '-')}-${message.id}.eml`
    const file = join(this.#folder, name)
    await mkdir(this.#folder, { recursive: true, mode: FOLDER_MODE })
    await this.#write(file, bytes as Buffer)
    this.#onWritten(file)
  }

  close(): void {}

  /** Renames the complete file, so that a program that watches for `.eml` never reads a partial one. */
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

/** Milliseconds; the query of `MAIL_URL` overrides them. nodemailer's defaults are minutes, which delays other mails. */
const TIMEOUTS = {
  dnsTimeout: 10_000,
  connectionTimeout: 10_000,
  greetingTimeout: 10_000,
  socketTimeout: 30_000,
}

/** Sends mails to an SMTP server. Loads nodemailer with the first mail, since most processes send none. */
class SmtpTransport implements Transport {
  readonly #url: string
  readonly #from: string
  #pool: Promise<Transporter> | null = null
  #isClosed = false

  constructor(url: string, from: string) {
    this.#url = url
    this.#from = from
  }

  async send(message: Message): Promise<void> {
    this.#pool ??= this.#open()
    const pool = await this.#pool
    // A closed pool opens another connection when it is used, which would never be closed.
    if (this.#isClosed) throw new Error('closed')
    await pool.sendMail(mailOptions(this.#from, message))
  }

  close(): void {
    this.#isClosed = true
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
      // The delivery queue retries.
      maxRequeues: 0,
      // Otherwise a server that does not close the connection keeps the process alive for five seconds.
      socketCloseTimeout: 0,
    })
  }
}

export interface MailSettings {
  /** `smtp://…` or `smtps://…`; `null`: mails become files in `folder`. */
  readonly url: string | null
  /** `Name <address>`, or the address alone. */
  readonly from: string
  readonly folder: string
}

/** @param onWritten with the path of each mail that became a file. */
export const openTransport = (
  { url, from, folder }: MailSettings,
  onWritten: (file: string) => void,
): Transport => (url === null ? new FileTransport(folder, from, onWritten) : new SmtpTransport(url, from))
