/** Signing in with a link that is mailed (docs/design.md, "Magic links"). Its rows and limits are those of mailed codes. */
import { isIPv4 } from 'node:net'
import { Type } from '@sinclair/typebox'
import { ServiceError } from '#base/errors'
import type { AuthResult } from '#core/accounts/auth-result'
import { digestOf, newToken } from '#core/accounts/email-token'
import type { VerifiedSignIn } from '#core/accounts/sign-ins'
import { anonymous } from '#core/audit-log/event'
import { type SessionClient, USER_AGENT_LENGTH } from '#core/auth/session'
import { linkTo } from '#core/mail/kinds'
import { clientNetwork } from '#core/rate-limits/limits'
import type { User } from '#core/users/user'
import { type DepsOf, type MailSite, oneOf } from '#feature/declaration'
import { LIFETIME, type PendingMagicLink, storedEmailCodes } from './stored-email-codes.ts'

export interface LinkValues {
  readonly token: string
  readonly isConfirmed: boolean
}

const link = ({ webUrl }: MailSite, { token }: LinkValues): string => linkTo(webUrl, '/magic-link', token)

/** What the feature of mailed codes declares for links. */
export const magicLinkParts = {
  events: { 'magic-link.requested': Type.Object({}) },
  mails: {
    /** Not limited: a stranger who requests links must not use up the mails that tell of changes. */
    magicLink: {
      isRateLimited: false,
      link,
      places: (_: LinkValues) => ({}),
      example: { token: 'example', isConfirmed: true },
      more: ({ unconfirmed }: { readonly unconfirmed: string }, { isConfirmed }: LinkValues) =>
        isConfirmed ? [] : [unconfirmed],
      en: {
        subject: 'Your link to sign in',
        text: 'With this link you sign in at {product}. The page behind it shows where the link was asked for.',
        button: 'Sign in',
        unconfirmed:
          'The address of your account has not been confirmed yet. The link confirms it, and removes everything that gives access to the account now: password, sessions, API keys, passkeys and authenticator app.',
        reason:
          'The link works once, for ten minutes, in any browser. Do not forward this mail to anybody. If it was not you, ignore it: without the link, nobody can sign in with it.',
      },
      de: {
        subject: 'Ihr Link zum Anmelden',
        text: 'Mit diesem Link melden Sie sich bei {product} an. Die Seite dahinter zeigt, von wo er angefordert wurde.',
        button: 'Anmelden',
        unconfirmed:
          'Die Adresse Ihres Kontos ist noch nicht bestätigt. Der Link bestätigt sie und entfernt alles, was jetzt Zugang zum Konto gibt: Passwort, Sitzungen, API-Schlüssel, Passkeys und Authenticator-App.',
        reason:
          'Der Link gilt einmal und zehn Minuten lang, in jedem Browser. Leiten Sie diese E-Mail nicht weiter. Wenn Sie es nicht waren, ignorieren Sie sie: Ohne den Link kann sich niemand damit anmelden.',
      },
    },
  },
  settings: {
    MAGIC_LINKS: {
      read: oneOf('off', 'on'),
      default: 'off',
      shown: true,
      description: 'on: users can sign in with links that are mailed',
    },
  },
} as const

const parts = { ...storedEmailCodes, ...magicLinkParts }

/**
 * Where a client is, so that its owner recognises it and a stranger learns little.
 * @param ip in canonical form.
 * @returns the /24 of an IPv4 address, the /48 of an IPv6 address.
 */
const networkOf = (ip: string | null): string | null => {
  if (ip === null) return null
  if (isIPv4(ip)) return `${ip.slice(0, ip.lastIndexOf('.'))}.0/24`
  return `${clientNetwork(ip).split(':').slice(0, 3).join(':')}::/48`
}

/** What the page behind a link shows before its button is pressed. */
export interface CheckedMagicLink {
  readonly user: User
  readonly link: PendingMagicLink
}

export class MagicLinks {
  readonly #deps: DepsOf<typeof parts>

  constructor(deps: DepsOf<typeof parts>) {
    this.#deps = deps
  }

  /**
   * Mails a link to sign in with, if there is an enabled account with this e-mail. All work is deferred, so that neither the response nor
   * its time reveals whether there is one.
   * @param email in canonical form. @param returnTo where the page behind the link leads back to.
   */
  request(email: string, client: SessionClient, returnTo?: string | null): void {
    this.#deps.deferred.run(() => this.#mail(email, client, returnTo))
  }

  /**
   * Reads a token without using it.
   * @throws {ServiceError} `badEmailToken`, `storeUnavailable`
   */
  async check(token: string): Promise<CheckedMagicLink> {
    const { store, findUser, clock } = this.#deps
    const found = await store.findMagicLink(digestOf(token), clock())
    const user = found && (await findUser(found.userId))
    // Disabling and another e-mail delete the link; this is for one that comes between the two reads.
    if (found === undefined || user === undefined || user.disabled || user.email !== found.email)
      throw new ServiceError('badEmailToken')
    return { user, link: found }
  }

  /**
   * Uses up a token and opens a session.
   * @param code for users with a second factor.
   * @throws {ServiceError} `badEmailToken`; `secondFactorRequired` and `wrongSecondFactor` leave the token valid; `codesUnavailable`,
   * `tooManyRequests`, `storeUnavailable`
   */
  signIn(token: string, code: string | undefined, client: SessionClient): Promise<AuthResult> {
    const verify = async (): Promise<VerifiedSignIn> => {
      const { user } = await this.check(token)
      return { user, proof: ['useEmailCode', digestOf(token)] }
    }
    return this.#deps.signIns.complete('magicLink', { client, code, verify })
  }

  async #mail(email: string, { ip, userAgent }: SessionClient, returnTo?: string | null): Promise<void> {
    const { store, findUserByEmail, newEvent, mails, returnTargets, clock } = this.#deps
    const user = await findUserByEmail(email)
    if (user === undefined) return
    const { id: userId, emailVerified } = user
    const now = clock()
    const { token, digest } = newToken(now)
    const stored = {
      ...{ id: digest, userId, email, code: '', createdAt: now, expiresAt: now + LIFETIME },
      askedFrom: { network: networkOf(ip), userAgent: userAgent?.slice(0, USER_AGENT_LENGTH) ?? null },
    }
    const event = newEvent('magic-link.requested', anonymous(ip), userId)
    if ((await store.addEmailCode(stored, event)) !== 'added') return
    await returnTargets.keep(token, returnTo, stored.expiresAt)
    mails.send('magicLink', user, { token, isConfirmed: emailVerified })
  }
}
