/** Signing in with a code that is mailed (docs/design.md, "E-mail codes"), and the feature of mailed codes and links. */
import { createHash, randomInt, timingSafeEqual } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { defineErrors, ServiceError } from '#base/errors'
import type { AuthResult } from '#core/accounts/auth-result'
import type { VerifiedSignIn } from '#core/accounts/sign-ins'
import { anonymous } from '#core/audit-log/event'
import type { SessionClient } from '#core/auth/session'
import { type DepsOf, defineFeature, newId, oneOf } from '#feature/declaration'
import { DecryptionError, type Keyring } from '#feature/encryption/keyring'
import { MagicLinks, magicLinkParts } from './magic-links.ts'
import {
  type CountedAttempt,
  LIFETIME,
  type PendingEmailCode,
  storedEmailCodes,
} from './stored-email-codes.ts'

export const ERRORS = defineErrors({
  wrongEmailCode: { status: 401, field: 'emailCode', message: 'is wrong or has expired' },
})

type CodeValues = { readonly code: string; readonly isConfirmed: boolean }

const MAILS = {
  /** Not limited: a stranger who requests codes must not use up the mails that tell of changes. */
  emailCode: {
    isRateLimited: false,
    places: (_: CodeValues) => ({}),
    example: { code: '12345678', isConfirmed: true },
    code: ({ code }: CodeValues) => code,
    more: ({ unconfirmed }: { readonly unconfirmed: string }, { isConfirmed }: CodeValues) =>
      isConfirmed ? [] : [unconfirmed],
    en: {
      subject: 'Your code to sign in',
      text: 'Enter this code to sign in at {product}. Nobody will ever ask you for it: do not give it to anybody.',
      unconfirmed:
        'The address of your account has not been confirmed yet. The code confirms it, and removes everything that gives access to the account now: password, sessions, API keys, passkeys and authenticator app.',
      reason:
        'The code works once, for ten minutes. If it was not you, ignore this mail: without the code, nobody can sign in with it.',
    },
    de: {
      subject: 'Ihr Code zum Anmelden',
      text: 'Geben Sie diesen Code ein, um sich bei {product} anzumelden. Niemand wird Sie je danach fragen: Geben Sie ihn nicht weiter.',
      unconfirmed:
        'Die Adresse Ihres Kontos ist noch nicht bestätigt. Der Code bestätigt sie und entfernt alles, was jetzt Zugang zum Konto gibt: Passwort, Sitzungen, API-Schlüssel, Passkeys und Authenticator-App.',
      reason:
        'Der Code gilt einmal und zehn Minuten lang. Wenn Sie es nicht waren, ignorieren Sie diese E-Mail: Ohne den Code kann sich niemand damit anmelden.',
    },
  },
}

const parts = {
  ...storedEmailCodes,
  events: { 'email-code.requested': Type.Object({}), ...magicLinkParts.events },
  mails: { ...MAILS, ...magicLinkParts.mails },
  errors: ERRORS,
  settings: {
    EMAIL_CODES: {
      read: oneOf('off', 'on'),
      default: 'off',
      shown: true,
      description:
        'on: users can sign in with codes that are mailed; with PostgreSQL it needs ENCRYPTION_KEY',
    },
    ...magicLinkParts.settings,
  },
  routes: new URL('routes/', import.meta.url),
  pages: () => import('./pages.ts'),
  console: () => import('./console-pages.ts'),
} as const

const DIGITS = 8

const contextOf = (userId: string) => ({ purpose: 'email-code', owner: userId })

const newCode = (): string => String(randomInt(10 ** DIGITS)).padStart(DIGITS, '0')

/** A code as people type it: with or without spaces and hyphens. */
const canonical = (code: string): string => code.replaceAll(/[ -]/g, '')

const isEqual = (expected: string, presented: string): boolean => {
  const [one, other] = [Buffer.from(expected), Buffer.from(canonical(presented))]
  return one.length === other.length && timingSafeEqual(one, other)
}

/**
 * The row that every attempt for an address writes. There are 256, so that simultaneous attempts for different addresses seldom wait for
 * each other.
 */
const attemptsRowOf = (email: string): string => createHash('sha256').update(email).digest('hex').slice(0, 2)

export interface EmailCodeCredentials {
  /** In canonical form. */
  readonly email: string
  readonly emailCode: string
  /** For users with a second factor. */
  readonly code?: string
}

/** The code that an attempt has presented. */
type FoundCode = PendingEmailCode & Pick<CountedAttempt, 'network'>

type EmailCodesDeps = Omit<DepsOf<typeof parts>, 'keyring'> & { readonly keyring: Keyring }

export class EmailCodes {
  readonly #deps: EmailCodesDeps
  /** Decrypted where there is no code, so that the work is the same. */
  readonly #nobodysCode: PendingEmailCode

  constructor(deps: EmailCodesDeps) {
    this.#deps = deps
    const userId = ''
    this.#nobodysCode = { id: '', userId, code: deps.keyring.encrypt(newCode(), contextOf(userId)) }
  }

  /**
   * Mails a code to sign in with, if there is an enabled account with this e-mail. All work is deferred, so that neither the response nor
   * its time reveals whether there is one.
   * @param email in canonical form.
   */
  request(email: string, ip: string | null): void {
    this.#deps.deferred.run(() => this.#mail(email, ip))
  }

  /**
   * Uses up a code and opens a session. An unknown e-mail, and one without a code, cost the same work as a wrong code.
   * @throws {ServiceError} `wrongEmailCode`; `accountDisabled`, `secondFactorRequired` and `wrongSecondFactor` only after the correct
   * e-mail code, which stays valid; `codesUnavailable`, `tooManyRequests`, `storeUnavailable`
   */
  async signIn(credentials: EmailCodeCredentials, client: SessionClient): Promise<AuthResult> {
    const { signIns, findUser } = this.#deps
    const { email, emailCode, code } = credentials
    let found: FoundCode | undefined
    const verify = async (): Promise<VerifiedSignIn> => {
      found ??= await this.#compare(email, emailCode, client.ip)
      const user = await findUser(found.userId)
      // Another e-mail meanwhile has deleted the code.
      if (user?.email !== email) throw new ServiceError(ERRORS.wrongEmailCode)
      return { user, proof: ['useEmailCode', found.id] }
    }
    try {
      return await signIns.complete('emailCode', { client, code, verify })
    } catch (error) {
      // The limit is for guesses: somebody who knows the code may mistype the other one.
      if (found !== undefined) await this.#deps.store.uncountAttempt(found.id, found.network)
      throw error
    }
  }

  /** @throws {ServiceError} `wrongEmailCode` */
  async #compare(email: string, presented: string, ip: string | null): Promise<FoundCode> {
    const { store, clock } = this.#deps
    const { codes, network } = await store.countAttempt(email, attemptsRowOf(email), ip, clock())
    const compared = codes.length > 0 ? codes : [this.#nobodysCode]
    const [found] = compared.filter(code => this.#isRight(code, presented))
    if (found === undefined || codes.length === 0) throw new ServiceError(ERRORS.wrongEmailCode)
    return { ...found, network }
  }

  #isRight({ userId, code }: PendingEmailCode, presented: string): boolean {
    const { keyring, logger } = this.#deps
    try {
      return isEqual(keyring.decrypt(code, contextOf(userId)).text, presented)
    } catch (err) {
      if (!(err instanceof DecryptionError)) throw err
      logger.error({ err, user: userId }, 'a mailed code cannot be decrypted')
      return false
    }
  }

  async #mail(email: string, ip: string | null): Promise<void> {
    const { store, findUserByEmail, newEvent, keyring, mails, clock } = this.#deps
    const user = await findUserByEmail(email)
    if (user === undefined) return
    const { id: userId, emailVerified } = user
    const now = clock()
    const code = newCode()
    const stored = {
      id: newId(now),
      userId,
      email,
      createdAt: now,
      expiresAt: now + LIFETIME,
      code: keyring.encrypt(code, contextOf(userId)),
      askedFrom: null,
    }
    const event = newEvent('email-code.requested', anonymous(ip), userId)
    if ((await store.addEmailCode(stored, event)) === 'added')
      mails.send('emailCode', user, { code, isConfirmed: emailVerified })
  }
}

export const emailCodes = defineFeature({
  ...parts,
  checkSettings: ({ EMAIL_CODES, MAGIC_LINKS }, { sendsMails, encrypts }) => [
    ...(EMAIL_CODES === 'on' && !sendsMails
      ? ['MAIL_URL cannot be off with EMAIL_CODES: no code would be sent']
      : []),
    ...(MAGIC_LINKS === 'on' && !sendsMails
      ? ['MAIL_URL cannot be off with MAGIC_LINKS: no link would be sent']
      : []),
    ...(EMAIL_CODES === 'on' && !encrypts
      ? ['ENCRYPTION_KEY is needed with PostgreSQL and EMAIL_CODES: every instance has to read the codes']
      : []),
  ],
  signInMethods: {
    emailCode: {
      amr: ['otp'],
      rejection: ERRORS.wrongEmailCode,
      needsSecondFactor: true,
      provesMailbox: true,
      isEnabled: ({ EMAIL_CODES }) => EMAIL_CODES === 'on',
    },
    magicLink: {
      amr: ['otp'],
      rejection: 'badEmailToken',
      needsSecondFactor: true,
      provesMailbox: true,
      isEnabled: ({ MAGIC_LINKS }) => MAGIC_LINKS === 'on',
    },
  },
  services: {
    /** `null` with `EMAIL_CODES=off`. */
    emailCodes: ({ keyring: keyringOf, ...deps }) => {
      const keyring = deps.settings.EMAIL_CODES === 'on' ? keyringOf() : null
      return keyring && new EmailCodes({ ...deps, keyring })
    },
    /** `null` with `MAGIC_LINKS=off`. */
    magicLinks: deps => (deps.settings.MAGIC_LINKS === 'on' ? new MagicLinks(deps) : null),
  },
})
