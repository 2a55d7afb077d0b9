/** The mails of an app without an SMTP server: files in its mail folder (docs/design.md, "Account life cycle"). */
import { existsSync, readdirSync, readFileSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import PostalMime, { type Email } from 'postal-mime'
import { ACCOUNT_MAILS } from '#core/accounts/mails'
import type { MailKinds } from '#core/mail/kinds'
import { type BuiltInMails as AccountMails, allFeatures } from '#features/built-in'

/** Editors complete the kinds of the core. Features have further ones. */
type Kind = keyof AccountMails | (string & {})

const KINDS: MailKinds = Object.assign({}, ACCOUNT_MAILS, ...allFeatures().map(({ mails }) => mails))

/** The subject of each kind, by which tests tell mails apart. docs/mail.md states them, and a test compares. */
export const SUBJECT = Object.fromEntries(
  Object.entries(KINDS).map(([kind, { en }]) => [kind, en.subject]),
) as Readonly<Record<keyof AccountMails, string>> & Readonly<Record<string, string>>

/** The token of a mail, which is in the link of both parts. */
export const tokenIn = ({ text = '', html = '' }: Email): string => {
  const token = /[?&;]token=([\w-]+)$/m.exec(text)?.[1] ?? ''
  if (token === '' || !new RegExp(`[?&;]token=${token}(?![\\w-])`).test(html))
    throw new Error(`no token in ${text}`)
  return token
}

/** Whether the mail has a token, which only the owner of the address may read. */
export const hasToken = ({ text = '', html = '' }: Email): boolean => /token/i.test(text + html)

const mailsIn = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter(name => name.endsWith('.eml'))
        .sort()
    : []

/** The mails in a folder, oldest first. */
export const readMails = async (folder: string): Promise<Email[]> => {
  const mails: Email[] = []
  for (const name of mailsIn(folder)) mails.push(await PostalMime.parse(readFileSync(join(folder, name))))
  return mails
}

/** Takes the mails out of a folder: listing thousands at each poll took a third of the tests of races. */
class Inbox {
  readonly mails: Email[] = []
  readonly #byRecipient = new Map<string, Email[]>()
  readonly #folder: string
  #parsed: Promise<void> = Promise.resolve()

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Resolves when all mails that are in the folder now are in {@link mails}. */
  fetch(): Promise<void> {
    const contents = mailsIn(this.#folder).map(name => {
      const file = join(this.#folder, name)
      const content = readFileSync(file)
      unlinkSync(file)
      return content
    })
    if (contents.length > 0) this.#parsed = this.#parsed.then(() => this.#parse(contents))
    return this.#parsed
  }

  to(address: string): readonly Email[] {
    return this.#byRecipient.get(address) ?? []
  }

  async #parse(contents: readonly Buffer[]): Promise<void> {
    for (const content of contents) {
      const mail = await PostalMime.parse(content)
      const address = mail.to?.[0]?.address ?? ''
      const received = this.#byRecipient.get(address) ?? []
      this.#byRecipient.set(address, received)
      received.push(mail)
      this.mails.push(mail)
    }
  }
}

/** By the configuration of the app. Mailboxes of an app see the same mails. */
const inboxes = new WeakMap<object, Inbox>()

const inboxOf = ({ config: { mail } }: FastifyInstance): Inbox => {
  const inbox = inboxes.get(mail) ?? new Inbox(mail.folder)
  inboxes.set(mail, inbox)
  return inbox
}

/** The mails of an app. Waits end with the test's own time limit. */
export const mailbox = (app: FastifyInstance) => {
  const inbox = inboxOf(app)

  const all = async (): Promise<Email[]> => {
    await inbox.fetch()
    return [...inbox.mails]
  }

  const received = async (address: string): Promise<readonly Email[]> => {
    await inbox.fetch()
    return inbox.to(address)
  }

  const now = async (address: string, kind: Kind): Promise<Email[]> => {
    const expected = SUBJECT[kind]
    if (expected === undefined) throw new Error(`There is no mail ${kind}`)
    return (await received(address)).filter(({ subject }) => subject === expected)
  }

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
      return (await received(address)).map(({ subject }) => subject ?? '')
    },
  }
}
