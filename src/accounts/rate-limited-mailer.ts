/**
 * Mails that nobody can have a stranger flooded with: they are counted by who receives them, since accounts are easily had,
 * and an address is easily given. Those by which somebody gets back into an account are limited with it, so that no flood of
 * others keeps them away.
 */
import { createHash } from 'node:crypto'
import type { MailLimits, OpenRateLimit } from '../rate-limits/limits.ts'
import type { Mails } from './mails.ts'

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
