/** What an app without an SMTP server mails: files in its outbox (DESIGN §9). */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import PostalMime, { type Email } from 'postal-mime'
import type { AccountMails } from '../../src/accounts/mails.ts'

type Kind = keyof AccountMails

/** What each kind of mail is known by. */
export const SUBJECT: Readonly<Record<Kind, string>> = {
  verification: 'Confirm your e-mail address',
  emailChange: 'Confirm your new e-mail address',
  emailChangeRequested: 'Your e-mail address is to be changed',
  emailChanged: 'Your e-mail address has been changed',
  passwordReset: 'Choose another password',
  passwordChanged: 'Your password has been changed',
  accountExists: 'You have an account already',
  accountDeleted: 'Your account has been deleted',
}

/** The token of a mail, which is the same in the link, in both parts, and by itself. */
export const tokenIn = ({ text = '', html = '' }: Email): string => {
  const token = /^ {4}(\S+)$/m.exec(text)?.[1] ?? ''
  const linked = new RegExp(`[?&;]token=${token}(?![\\w-])`)
  if (token === '' || !linked.test(text) || !linked.test(html)) throw new Error(`no token in ${text}`)
  return token
}

/** What nobody but the owner of the address may read. */
export const hasToken = ({ text = '', html = '' }: Email): boolean => /token/i.test(text + html)

/** Reads a folder again and again, each file once. */
const outboxReader = (folder: string) => {
  const parsed = new Map<string, Email>()
  return async (): Promise<Email[]> => {
    const names = existsSync(folder) ? readdirSync(folder).filter(name => name.endsWith('.eml')) : []
    for (const name of names.sort())
      if (!parsed.has(name)) parsed.set(name, await PostalMime.parse(readFileSync(join(folder, name))))
    return [...parsed.values()]
  }
}

/** The mails in an outbox, the oldest first. */
export const readOutbox = (folder: string): Promise<Email[]> => outboxReader(folder)()

/** The outbox of an app. Waits are ended by the test's own limit. */
export const mailbox = (app: FastifyInstance) => {
  const all = outboxReader(app.config.mail.outbox)

  const now = async (address: string, kind: Kind): Promise<Email[]> =>
    (await all()).filter(mail => mail.to?.[0]?.address === address && mail.subject === SUBJECT[kind])

  /** The mails of a kind to an address, once so many are there. */
  const to = async (address: string, kind: Kind, count = 1): Promise<Email[]> => {
    for (;;) {
      const mails = await now(address, kind)
      if (mails.length >= count) return mails
      await sleep(5)
    }
  }

  return {
    all,
    to,
    /** The token in the latest of so many mails of a kind. */
    async token(address: string, kind: Kind, count = 1): Promise<string> {
      const mail = (await to(address, kind, count)).at(-1)
      return mail === undefined ? '' : tokenIn(mail)
    },
    /** Every mail that there will be: a closing app does what waits, and sends what is due. */
    async final(address: string): Promise<string[]> {
      await app.close()
      return (await all()).filter(mail => mail.to?.[0]?.address === address).map(mail => mail.subject ?? '')
    },
  }
}
