import { createHash } from 'node:crypto'
import type { MailLimits, OpenRateLimit } from '../rate-limits/limits.ts'

/** The mails that an account's life sends: after the change is kept, and without anybody waiting for them. */
export interface Mails {
  /** To a new account: the link that shows that the address is the user's. */
  verification(to: string, token: string): void
  /** To an address that is to become an account's: the link that makes it so. */
  newEmail(to: string, token: string): void
  /** To the address that an account still has: another one is to take its place. */
  emailChangeRequested(to: string, newEmail: string): void
  /** To the address that an account had. */
  emailChanged(to: string, newEmail: string): void
  /** The link to choose another password. */
  passwordReset(to: string, token: string): void
  passwordChanged(to: string): void
  /** To an address that somebody wants for another account: the link to choose another password for the one that it has. */
  accountExists(to: string, token: string): void
  accountDeleted(to: string): void
}

/**
 * Mails that nobody can have a stranger flooded with: they are counted by who receives them, since accounts are easily had,
 * and an address is easily given. Those by which somebody gets back into an account are limited with it, so that no flood of
 * others keeps them away.
 */

/** 128 bits: neither memory nor the table of counts holds e-mails. */
const DIGEST_LENGTH = 22

const digest = (to: string): string =>
  createHash('sha256').update(to).digest('base64url').slice(0, DIGEST_LENGTH)

export interface RateLimitedMailer extends Mails {
  /** Waits for what is being counted: whoever closes the mails beneath would lose it. */
  counted(): Promise<void>
}

/** @param onDropped told of a mail that is not sent. */
export const rateLimitedMailer = (
  mails: Mails,
  open: OpenRateLimit,
  { count, within }: MailLimits,
  onDropped: () => void,
): RateLimitedMailer => {
  const underWay = new Set<Promise<void>>()
  const limit = open({ name: 'mails', points: count, seconds: within, final: true })
  const limited =
    <Values extends readonly string[]>(send: (to: string, ...values: Values) => void) =>
    (to: string, ...values: Values): void => {
      const done = limit
        .consume(digest(to))
        .then(({ allowed }) => (allowed ? send(to, ...values) : onDropped()))
        .finally(() => underWay.delete(done))
      underWay.add(done)
    }
  return {
    async counted() {
      await Promise.all(underWay)
    },
    verification: limited((to, token: string) => mails.verification(to, token)),
    newEmail: limited((to, token: string) => mails.newEmail(to, token)),
    emailChangeRequested: limited((to, email: string) => mails.emailChangeRequested(to, email)),
    emailChanged: limited((to, email: string) => mails.emailChanged(to, email)),
    passwordChanged: limited(to => mails.passwordChanged(to)),
    accountDeleted: limited(to => mails.accountDeleted(to)),
    passwordReset: (to, token) => mails.passwordReset(to, token),
    accountExists: (to, token) => mails.accountExists(to, token),
  }
}
