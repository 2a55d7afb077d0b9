/** A real SMTP server on loopback, and a mailer with its log. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { ACCOUNT_MAILS } from '#core/accounts/mails'
import { Mailer, type MailerDeps } from '#core/mail/mailer'
import { SHUTDOWN } from '#process/shutdown'
import { type Context, temporaryFolder } from './build.ts'

export interface Received {
  readonly mail: Email
  readonly from: string
  readonly to: readonly string[]
  /** Whether it came over TLS, and the authenticated user. */
  readonly secure: boolean
  readonly user: string | undefined
}

export interface SmtpOptions extends SMTPServerOptions {
  readonly port?: number
}

/** Accepts every mail from every client, unless the options say otherwise. */
export const startSmtp = async (t: Context, { port = 0, ...options }: SmtpOptions = {}) => {
  const mails: Received[] = []
  let arrived = Promise.withResolvers<void>()
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, { envelope, secure, user }, done) {
      const parsed = buffer(stream).then(bytes => PostalMime.parse(bytes))
      parsed.then(mail => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
        mails.push({ mail, from, to: envelope.rcptTo.map(each => each.address), secure, user })
        done()
        arrived.resolve()
        arrived = Promise.withResolvers()
      }, done)
    },
    ...options,
  })
  // A client that disconnects without QUIT.
  server.on('error', () => undefined)
  server.listen(port, '127.0.0.1')
  await once(server.server, 'listening')
  const stop = () => new Promise<void>(resolve => void server.close(() => resolve()))
  t.teardown(stop)
  const listening = (server.server.address() as AddressInfo).port
  return {
    port: listening,
    url: `smtp://127.0.0.1:${listening}`,
    mails,
    stop,
    /** Waits until so many have arrived; the test's own time limit ends the wait. */
    async received(count: number): Promise<readonly Received[]> {
      while (mails.length < count) await arrived.promise
      return mails
    },
  }
}

/** Collects the mailer's log lines; `until` waits for one. */
export const mailLog = () => {
  const lines: string[] = []
  let logged = Promise.withResolvers<void>()
  const add = (line: string): void => {
    lines.push(line)
    logged.resolve()
    logged = Promise.withResolvers()
  }
  return {
    lines,
    info: (message: string) => add(`info ${message}`),
    warn: (message: string) => add(`warn ${message}`),
    error: ({ err }: { err: Error }, message: string) => add(`error ${message}: ${err}`),
    async until(pattern: RegExp): Promise<string> {
      // The timers of waiting mails are unreferenced, so this one keeps the process alive.
      const held = setInterval(() => undefined, 60_000)
      try {
        for (;;) {
          const found = lines.find(line => pattern.test(line))
          if (found !== undefined) return found
          await logged.promise
        }
      } finally {
        clearInterval(held)
      }
    },
  }
}

/** A mailer with a separate log, closed with the test. */
export const createMailer = (t: Context, url: string | null, parts: Partial<MailerDeps> = {}) => {
  const log = mailLog()
  const mailer = new Mailer(ACCOUNT_MAILS, {
    mail: { url, from: 'Gatehouse <no-reply@gatehouse.example>', folder: join(temporaryFolder(t), 'outbox') },
    productName: 'accounts.example.com',
    publicUrl: 'https://accounts.example.com/api',
    webUrl: 'https://app.example.com/welcome?from=mail',
    accountUrl: 'https://app.example.com/welcome?from=mail',
    log,
    closing: SHUTDOWN.mails,
    ...parts,
  })
  t.teardown(() => mailer.close())
  return { mailer, log }
}

/** The recipient of a mail. */
export const recipient = (email: string, locale: string | null = null) => ({ email, locale })
