/** A real SMTP server on loopback, and a mailer with its log. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { ACCOUNT_MAILS } from '../../src/accounts/mails.ts'
import { Mailer, type MailerDeps } from '../../src/mail/mailer.ts'
import { type Context, temporaryFolder } from './build.ts'

export interface Received {
  readonly mail: Email
  readonly from: string
  readonly to: readonly string[]
  /** Whether it came over TLS, and as whom. */
  readonly secure: boolean
  readonly user: string | undefined
}

export interface SmtpOptions extends SMTPServerOptions {
  readonly port?: number
}

/** Takes every mail from everybody, unless the options say otherwise. */
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
  // A client that goes without a word.
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
    /** Waits until so many have arrived; the test's own limit ends a wait in vain. */
    async received(count: number): Promise<readonly Received[]> {
      while (mails.length < count) await arrived.promise
      return mails
    },
  }
}

/** Collects what a mailer has logged; `until` waits for a line. */
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
    onNotice: (message: string) => add(`info ${message}`),
    onWarning: (message: string) => add(`warn ${message}`),
    onFailure: (error: unknown, message: string) => add(`error ${message}: ${error}`),
    async until(pattern: RegExp): Promise<string> {
      // The timers of mails that wait keep no process alive, so this does.
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

/** A mailer with a log of its own, closed with the test. */
export const createMailer = (t: Context, url: string | null, parts: Partial<MailerDeps> = {}) => {
  const log = mailLog()
  const mailer = new Mailer(ACCOUNT_MAILS, {
    mail: { url, from: 'Gatehouse <no-reply@gatehouse.example>', outbox: join(temporaryFolder(t), 'outbox') },
    publicUrl: 'https://accounts.example.com/api',
    webUrl: 'https://app.example.com/welcome?from=mail',
    ...log,
    ...parts,
  })
  t.teardown(() => mailer.close())
  return { mailer, log }
}
