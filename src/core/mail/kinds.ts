/** How a kind of mail is declared. All else follows from it, the sender's type and the rate limit too. */
import type { TextTree } from '#base/texts'
import type { User } from '../users/user.ts'

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

/**
 * The texts of a mail in one language. `{product}`, `{host}` and `{publicUrl}` are places of every text, further ones come from
 * `places` of the kind. Further names are texts that `more` of the kind chooses from.
 */
export interface MailTexts extends TextTree {
  /** Without places: values that a user chooses never appear in a header. */
  readonly subject: string
  readonly text: string
  /** Required for a kind with `link`. */
  readonly button?: string
  /** Below the button: how long it works, and what to do if it was not the reader. */
  readonly reason?: string
}

/**
 * A mail, with its texts in English, and in German if it has them.
 *
 *     const noteShared = {
 *       isRateLimited: true,
 *       en: { subject: 'A note is shared with you', text: '{author} shares a note with you.', button: 'Read the note' },
 *       places: ({ author }: { readonly author: string; readonly id: string }) => ({ author }),
 *       link: ({ webUrl }: MailSite, { id }: { readonly id: string }) => linkTo(webUrl, `/notes/${id}`),
 *     }
 */
export interface MailKind {
  readonly en: MailTexts
  readonly de?: MailTexts
  /**
   * Whether the limit for each recipient applies; not to mails that give access back to an owner. `alone`: counted apart, because strangers
   * cause them, who must not use up the mails that tell of changes.
   */
  readonly isRateLimited: boolean | 'alone'
  /** The values of places. Its parameter declares what the sender passes. */
  readonly places?: (values: never) => Readonly<Record<string, string | number>>
  /** Values to try the mail with: `npm run cli -- mail test`, `POST /admin/mails/test`. A kind that takes values and has no example is left out there. */
  readonly example?: object
  /** Where the button leads, also for templates that replace the texts. `null`: the mail has no button. */
  readonly link?: (site: MailSite, ...values: never[]) => string | null
  /** Further paragraphs, below `text`. @param texts of the kind in the language of the recipient. */
  readonly more?: (texts: never, values: never) => readonly string[]
  /** A code for people, shown on a line of its own. */
  readonly code?: (values: never) => string
}

/** Whether it can be sent as a test: it has an example, or takes no values. */
export const canBeTried = ({ places, example }: Pick<MailKind, 'places' | 'example'>): boolean =>
  places === undefined || example !== undefined

export type MailKinds = Readonly<Record<string, MailKind>>

export type TranslatedMailKinds = Readonly<Record<string, MailKind & { readonly de: MailTexts }>>

/** A recipient, such as a user. The language is that of `locale`, by default English. */
export type MailRecipient = Pick<User, 'email' | 'locale'>

/** The values that a kind takes, if any: the parameter of its `places`. */
export type MailValues<Kind extends MailKind> = Kind extends {
  readonly places: (values: infer Values) => unknown
}
  ? [Values]
  : []

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
  (Kind extends { link: (...values: never[]) => infer Link } ? { readonly link: Link } : unknown)

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
