/** The mails of an app without an SMTP server: files in its mail folder (DESIGN §9). */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import PostalMime, { type Email } from 'postal-mime'
import { ACCOUNT_MAILS, type AccountMails } from '../../src/accounts/mails.ts'
import { allFeatures } from '../../src/built-in-features.ts'
import type { MailKinds } from '../../src/mail/kinds.ts'

type Kind = keyof AccountMails | 'apiKeyCreated'

const KINDS: MailKinds = Object.assign({}, ACCOUNT_MAILS, ...allFeatures().map(({ mails }) => mails))

/** The subject of each kind, by which tests tell mails apart. docs/mail.md states them, and a test compares. */
export const SUBJECT = Object.fromEntries(
  Object.entries(KINDS).map(([kind, { subject }]) => [kind, subject]),
) as Readonly<Record<Kind, string>>

/** The token of a mail, which is the same in the link, in both parts, and by itself. */
export const tokenIn = ({ text = '', html = '' }: Email): string => {
  const token = /^ {4}(\S+)$/m.exec(text)?.[1] ?? ''
  const linked = new RegExp(`[?&;]token=${token}(?![\\w-])`)
  if (token === '' || !linked.test(text) || !linked.test(html)) throw new Error(`no token in ${text}`)
  return token
}

/** Whether the mail has a token, which only the owner of the address may read. */
export const hasToken = ({ text = '', html = '' }: Email): boolean => /token/i.test(text + html)

/** Reads a folder repeatedly, each file once. */
const folderReader = (folder: string) => {
  const parsed = new Map<string, Email>()
  return async (): Promise<Email[]> => {
    const names = existsSync(folder) ? readdirSync(folder).filter(name => name.endsWith('.eml')) : []
    for (const name of names.sort())
      if (!parsed.has(name)) parsed.set(name, await PostalMime.parse(readFileSync(join(folder, name))))
    return [...parsed.values()]
  }
}

/** The mails in a folder, oldest first. */
export const readMails = (folder: string): Promise<Email[]> => folderReader(folder)()

/** The mail folder of an app. Waits end with the test's own time limit. */
export const mailbox = (app: FastifyInstance) => {
  const all = folderReader(app.config.mail.folder)

  const now = async (address: string, kind: Kind): Promise<Email[]> =>
    (await all()).filter(mail => mail.to?.[0]?.address === address && mail.subject === SUBJECT[kind])

  /** The mails of a kind to an address, once there are so many. */
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
    /** All subjects after closing the app, which sends waiting mails. */
    async final(address: string): Promise<string[]> {
      await app.close()
      return (await all()).filter(mail => mail.to?.[0]?.address === address).map(mail => mail.subject ?? '')
    },
  }
}
