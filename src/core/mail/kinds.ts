/** How a kind of mail is declared. All else follows from it, the sender's type and the rate limit too. */
import type { User } from '../users/user.ts'

/** A paragraph, a link, or a token on a line of its own. */
export type Block = string | { readonly link: string; readonly label: string } | { readonly code: string }

export interface MailSite {
  /** The product's name, by default the host. */
  readonly name: string
  readonly host: string
  readonly publicUrl: string
  /** The web application of the users. Without `WEB_URL` the base URL of the hosted pages. */
  readonly webUrl: string
  /** `WEB_URL`, or the hosted page. */
  readonly accountUrl: string
}

export interface MailTexts {
  /** Equal for every recipient: values that a user chooses never appear in a header. */
  readonly subject: string
  /** The text between greeting and footer. A second parameter declares the values that the sender passes. */
  readonly body: (site: MailSite, ...values: never[]) => readonly Block[]
}

/** A mail, with its texts in English, and in German if it has them. */
export interface MailKind extends MailTexts {
  readonly de?: MailTexts
  /**
   * Whether the limit for each recipient applies; not to mails that give access back to an owner. `alone`: counted apart, because strangers
   * cause them, who must not use up the mails that tell of changes.
   */
  readonly isRateLimited: boolean | 'alone'
  /** The mail's main link, for templates that replace `body`. */
  readonly link?: (site: MailSite, ...values: never[]) => string
}

export type MailKinds = Readonly<Record<string, MailKind>>

export type TranslatedMailKinds = Readonly<Record<string, MailKind & { readonly de: MailTexts }>>

/** A recipient, such as a user. The language is that of `locale`, by default English. */
export type MailRecipient = Pick<User, 'email' | 'locale'>

/** The values that the body of a kind takes, if any. */
export type MailValues<Kind extends MailKind> =
  Parameters<Kind['body']> extends [MailSite, ...infer Values] ? Values : []

/** What a template returns. Without `html`, the HTML part is the text. */
export interface MailText {
  readonly subject: string
  readonly text: string
  readonly html?: string
}

/** What a template receives: the service, the recipient's language, the values of the kind, and the link of a kind that has one. */
export type MailData<Kind extends MailKind> = MailSite &
  Pick<MailRecipient, 'locale'> &
  (MailValues<Kind> extends [infer Values] ? Values : unknown) &
  (Kind extends { link: unknown } ? { readonly link: string } : unknown)

export type MailTemplate = (data: never) => MailText

export type MailTemplates<Kinds extends MailKinds> = {
  readonly [Name in keyof Kinds]?: (data: MailData<Kinds[Name]>) => MailText
}

export interface MailSender<Kinds extends MailKinds> {
  /** Never waits and never fails. Call it after the change is stored. */
  send<Name extends keyof Kinds & string>(
    name: Name,
    to: MailRecipient,
    ...values: MailValues<Kinds[Name]>
  ): void
}

/** `path` below `base`, whose own path and query stay. */
export const linkTo = (base: string, path: string, token?: string): string => {
  const url = new URL(base)
  url.pathname = url.pathname.replace(/\/$/, '') + path
  if (token !== undefined) url.searchParams.set('token', token)
  return url.href
}
