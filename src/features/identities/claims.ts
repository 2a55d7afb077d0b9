/** Who a provider says a user is. Nothing else of its tokens and responses is kept. */
import { firstLocale } from '#core/users/locale'
import { canonicalEmail, EMAIL_MAX_LENGTH } from '#core/users/user'
import { nameViolations, newEmailViolations } from '#http/validation/formats'
import { type Given, presentIn } from './provider-responses.ts'
import type { Provider } from './provider-settings.ts'

export interface Claims {
  /** The issuer in the settings, which is that of the ID token. */
  readonly issuer: string
  readonly subject: string
  /** In canonical form; `null` without an e-mail that an account may have. */
  readonly email: string | null
  /** Whether the provider confirms the e-mail, and is one that the settings believe for its domain. */
  readonly isEmailConfirmed: boolean
  readonly firstName: string | null
  readonly lastName: string | null
  readonly locale: string | null
  /** Whether the provider has verified two factors, by the settings. */
  readonly isMultiFactor: boolean
}

/** Characters of a subject (OIDC Core §2). */
const MAX_SUBJECT = 255

/** @returns `null` for anything but a text that identifies a user. */
export const subjectOf = (subject: unknown): string | null =>
  typeof subject === 'string' &&
  subject.length <= MAX_SUBJECT &&
  /^[\x20-\x7e]+$/.test(subject) &&
  subject.trim() !== ''
    ? subject
    : null

const emailOf = (email: unknown): string | null => {
  if (typeof email !== 'string' || email.length > EMAIL_MAX_LENGTH) return null
  const canonical = canonicalEmail(email)
  return newEmailViolations(canonical).length === 0 ? canonical : null
}

/** The most code points of a name. */
const MAX_NAME = 128

const nameOf = (name: unknown): string | null => {
  if (typeof name !== 'string') return null
  const text = name.trim()
  const isStorable =
    text !== '' && text.isWellFormed() && !text.includes('\0') && [...text].length <= MAX_NAME
  return isStorable && nameViolations(text).length === 0 ? text : null
}

const domainOf = (email: string): string => email.slice(email.lastIndexOf('@') + 1)

const isAuthoritative = ({ authoritativeFor, domainClaim }: Provider, email: string, given: Given): boolean =>
  authoritativeFor === '*' ||
  authoritativeFor.includes(domainOf(email)) ||
  (domainClaim !== null && given[domainClaim] === domainOf(email))

const isMultiFactor = ({ multiFactor }: Provider, { amr, acr }: Given): boolean =>
  (Array.isArray(amr) && amr.some(value => multiFactor.amr.includes(value))) ||
  (typeof acr === 'string' && multiFactor.acr.includes(acr))

/** Tags with underscores too, as OIDC Core §5.1 allows. */
const localeOf = (...given: readonly unknown[]): string | null =>
  firstLocale(given.filter(each => typeof each === 'string').map(text => text.replaceAll('_', '-')))

/**
 * The e-mail with its confirmation, both from the same place: the ID token, unless only the user info has the e-mail, or says whether it is
 * confirmed.
 */
const contactOf = (token: Given, info: Given): Given => {
  if (token.email === undefined) return info
  const email = emailOf(token.email)
  const isConfirmedByInfo =
    token.email_verified === undefined && email !== null && email === emailOf(info.email)
  return isConfirmedByInfo ? info : token
}

/** @param idToken claims of the ID token, which alone says how the user was authenticated. @param userInfo of the UserInfo endpoint. */
export const claimsOf = (
  provider: Provider,
  subject: string,
  idToken: Given,
  userInfo: Given = {},
): Claims => {
  const [token, info] = [presentIn(idToken), presentIn(userInfo)]
  const contact = contactOf(token, info)
  // A claim of the signed token counts more.
  const profile = { ...info, ...token }
  const email = emailOf(contact.email)
  return {
    issuer: provider.issuer,
    subject,
    email,
    // Nothing but `true`: not "true", not 1 (CASES L6).
    isEmailConfirmed:
      email !== null && contact.email_verified === true && isAuthoritative(provider, email, token),
    firstName: nameOf(profile.given_name ?? (profile.family_name === undefined ? profile.name : undefined)),
    lastName: nameOf(profile.family_name),
    locale: localeOf(token.locale, info.locale),
    isMultiFactor: isMultiFactor(provider, token),
  }
}
