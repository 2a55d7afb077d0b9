/** Without an SMTP server each mail becomes a file, to be read by whoever runs the service. */
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { mailOptions } from './mail-options.ts'
import type { Message, Transport } from './message.ts'

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
