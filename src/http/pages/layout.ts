/** What all hosted pages have in common, those of features too: the document, forms, and the summary of their errors. */
import type { FieldErrors } from '#base/errors'
import { fill, type OwnedTexts, type TextTree } from '#base/texts'
import { ACCOUNT_TEXTS } from './account-texts.ts'
import type { Brand } from './brand.ts'
import { type Html, type HtmlValue, html } from './html.ts'
import { type IconName, icon } from './icons.ts'
import { type ErrorTexts, errorSentence } from './messages.ts'
import { MAIN_FONT_FILE } from './style.ts'
import type { Texts } from './texts.ts'

/** The user of a page's session. */
interface PageUser {
  readonly email: string
  readonly firstName: string | null
  readonly lastName: string | null
}

/** The request that a page responds to. */
export interface PageContext {
  /** The texts of the core, in the language of the page. */
  readonly texts: Texts
  /** The texts of a feature, in the language of the page. */
  readonly textsOf: <English extends TextTree>(texts: OwnedTexts<English>) => English
  /** A tag of BCP 47. */
  readonly language: string
  /** The tags of all languages of the pages. */
  readonly languages: readonly string[]
  /** The errors of the core and of features. */
  readonly errorTexts: ErrorTexts
  /** What the security page can say once, after a redirect: of the core and of features. */
  readonly notices: ReadonlyMap<string, string>
  /** The relative URL of the service, with a slash at the end: a proxy may add a path. */
  readonly root: string
  readonly product: string
  readonly brand: Brand
  /** The web application of the users; `null` without one. */
  readonly webUrl: string | null
  /** Characters of a new password. */
  readonly passwordMinLength: number
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Whether there are all pages, and not only the one that confirms an e-mail. */
  readonly hasPages: boolean
  readonly hasSignUpPage: boolean
  /** The URLs of the scripts of features, relative to the service. */
  readonly scripts: readonly string[]
  readonly hasSession: boolean
  /** Where the page leads back to, a URL that was checked; `null`: nowhere. */
  readonly returnTo: string | null
  /** The user of the session; `null` without one. */
  readonly user: PageUser | null
  /** Whether the browser has sessions of several users, none of which counts. */
  readonly hasSeveralUsers: boolean
  /** The cookie of the notice that the security page shows once, for scripts. */
  readonly noticeCookie: string
}

/**
 * A parameter of the page behind a sign-in, which says then that the browser has not kept the cookie: otherwise the page to sign in would
 * open again without a word. What it says is true of everybody who opens the URL without a session.
 */
export const SIGNED_IN = 'signed-in'

export interface Page {
  readonly title: string
  readonly body: Html
  /** Whether the title begins with the word for an error, which screen readers read first. */
  readonly hasErrors?: boolean
  /** For pages with lists: a bar above, and room to the sides. Others are one card. */
  readonly isWide?: boolean
  /** Whether the card is wider than a form needs. */
  readonly hasWideCard?: boolean
  /** Links to the sections of a wide page. */
  readonly sections?: readonly Link[]
  /** Whether there is a button to sign out. */
  readonly isSignedIn?: boolean
  /** Whether the page has the scripts of features. */
  readonly hasScripts?: boolean
  /** A URL that the browser opens next, without a redirect. */
  readonly refreshTo?: string
  /** The name of the feature whose `assets` the page has. It becomes the class of the body, too. */
  readonly assetsOf?: string
  /** Replaces the content of the body, with header and main. */
  readonly frame?: Html
  /** HTML that is sent as it comes, in the place of {@link ARRIVING}. */
  readonly arriving?: AsyncIterable<Html>
}

/** The place of `Page.arriving` in a page. Text cannot have it, because it is escaped. */
export const ARRIVING: Html = html`<!--arriving-->`

/** The logo of the brand, with the name of the product. */
export const logoOf = ({ brand, product, root }: PageContext): Html => {
  const { logo } = brand
  if (logo === null) return html`<span class="logo" aria-hidden="true">${[...product][0]}</span>${product}`
  return logo.isWordmark
    ? html`<img class="wordmark" src="${root}${logo.url}" alt="${product}">`
    : html`<img class="logo" src="${root}${logo.url}" alt="">${product}`
}

const brandLink = (context: PageContext): Html =>
  context.hasPages
    ? html`<a class="brand" href="${context.root}security">${logoOf(context)}</a>`
    : html`<p class="brand">${logoOf(context)}</p>`

const signOutForm = ({ texts, root }: PageContext): Html =>
  html`<form method="post" action="${root}sign-out"><button>${icon('signOut')}${texts.signOut}</button></form>`

export const fullName = ({ firstName, lastName }: PageUser): string =>
  [firstName, lastName].filter(Boolean).join(' ')

/** Up to two letters of a name. */
export const avatar = (name: string, className = ''): Html => {
  const letters = name
    .split(/[\s@.-]+/)
    .slice(0, 2)
    .map(word => [...word][0] ?? '')
  return html`<span class="avatar ${className}" aria-hidden="true">${letters.join('').toUpperCase()}</span>`
}

/** The menu of a signed-in user, which opens and closes without script. */
const userMenu = (context: PageContext, user: PageUser): Html => {
  const own = context.textsOf(ACCOUNT_TEXTS)
  const { product, webUrl } = context
  const name = fullName(user)
  return html`<button class="quiet square" popovertarget="me">${avatar(name || user.email)}<span class="visually-hidden">${own.yourAccount}, ${user.email}</span></button>
<div class="menu" id="me" popover>
<p class="menu-head">${name !== '' && html`<strong>${name}</strong><br>`}<span class="muted">${user.email}</span></p>
<ul>${
    webUrl !== null &&
    html`
<li><a href="${webUrl}">${icon('back')}${fill(own.backTo, { product })}</a></li>`
  }
<li${webUrl !== null && html` class="rule"`}>${signOutForm(context)}</li>
</ul>
</div>`
}

/** @param hasSignOut for pages without a menu of the user. */
const pageFoot = (context: PageContext, hasSignOut = false): Html | false => {
  const own = context.textsOf(ACCOUNT_TEXTS)
  const { privacyUrl, termsUrl, supportUrl } = context.brand
  const entries = [
    [privacyUrl, own.privacy],
    [termsUrl, own.terms],
    [supportUrl, own.help],
  ] as const
  const found = entries.flatMap(([url, text]) => (url === null ? [] : [html`<a href="${url}">${text}</a>\n`]))
  return (
    (found.length > 0 || hasSignOut) &&
    html`<footer class="page-foot">
${found}${hasSignOut && html`<form method="post" action="${context.root}sign-out"><button class="text">${context.texts.signOut}</button></form>\n`}</footer>
`
  )
}

const skipLink = (context: PageContext): Html =>
  html`<a class="skip" href="#content">${context.textsOf(ACCOUNT_TEXTS).skip}</a>`

/** A page with a bar above, and links to its sections at the side. */
const wideBody = (context: PageContext, { body, sections = [], isSignedIn }: Page): Html =>
  html`<body class="hosted">
${skipLink(context)}
<header class="topbar"><div>
${brandLink(context)}
${isSignedIn && context.user !== null && userMenu(context, context.user)}
</div></header>
<div class="account-layout">
${
  sections.length > 0 &&
  html`<nav class="side-links" aria-label="${context.textsOf(ACCOUNT_TEXTS).yourAccount}"><ul>
${sections.map(([href, text]) => html`<li><a href="${href}">${text}</a></li>\n`)}</ul></nav>
`
}<main id="content">
${body}
</main>
</div>
${pageFoot(context)}</body>`

/** A page of one card. */
const cardBody = (context: PageContext, { body, isSignedIn, hasWideCard }: Page): Html =>
  html`<body class="hosted auth">
<main${hasWideCard && html` class="wide"`}>
${brandLink(context)}
${body}
</main>
${pageFoot(context, isSignedIn && context.user !== null)}</body>`

/** A page with a stylesheet and a frame of its own. */
const ownBody = ({ assetsOf = '', frame }: Page): Html => html`<body class="${assetsOf}">
${frame}
</body>`

export const documentOf = (context: PageContext, page: Page): Html => {
  const { texts, language, root, product, scripts, brand } = context
  const { assetsOf, isWide, refreshTo } = page
  const shown =
    assetsOf !== undefined ? ownBody(page) : isWide ? wideBody(context, page) : cardBody(context, page)
  return html`<!DOCTYPE html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
${refreshTo !== undefined && html`<meta http-equiv="refresh" content="0; url=${refreshTo}">\n`}<title>${page.hasErrors && `${texts.errorTitle}: `}${page.title} – ${product}</title>
<link rel="icon" href="${root}${brand.iconUrl}">
<link rel="preload" href="${root}${MAIN_FONT_FILE}" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="${root}pages/style.css">
<script type="module" src="${root}pages/page-script.js"></script>
${
  assetsOf !== undefined &&
  html`<link rel="stylesheet" href="${root}pages/${assetsOf}.css">
<script type="module" src="${root}pages/${assetsOf}.js"></script>
`
}${page.hasScripts && scripts.map(url => html`<script type="module" src="${root}${url}"></script>\n`)}</head>
${shown}
</html>
`
}

export interface Field {
  readonly name: string
  readonly label: string
  readonly type?: 'text' | 'email' | 'password' | 'date'
  /** What the user had entered. Passwords and codes are never shown again. */
  readonly value?: string | undefined
  readonly hint?: string
  readonly autocomplete: string
  /** Whether the field may stay empty. */
  readonly isOptional?: boolean
  /** Whether it is a filter: it may stay empty, which needs no mention. */
  readonly isFilter?: boolean
  /** Whether it is a code, which no keyboard corrects. Recovery codes have letters. */
  readonly isCode?: boolean
  /** Whether the keyboard of a phone shows digits alone. */
  readonly isNumeric?: boolean
  /** Whether it is a code of letters that another device shows. */
  readonly isLetterCode?: boolean
  /** Whether the page opens with the cursor in it. */
  readonly isFocused?: boolean
  /** Whether it has several lines. */
  readonly isLong?: boolean
  /** Beside the label, such as a link. */
  readonly aside?: Html
}

/** How a keyboard helps with a code, and how large it is shown. */
const codeAttributes = ({ isCode = false, isNumeric = false, isLetterCode = false }: Field): Html =>
  html`${isCode && html` autocapitalize="none" spellcheck="false"`}${isNumeric && html` inputmode="numeric" class="code-input"`}${isLetterCode && html` autocapitalize="characters" spellcheck="false" class="code-input"`}`

/** The fields of a form and the errors of the last attempt. Render the fields first, then the summary. */
export class Form {
  readonly #context: PageContext
  readonly #errors: FieldErrors
  readonly #labels = new Map<string, string>()
  readonly #id: string

  /** @param id distinguishes the fields of several forms on one page. */
  constructor(context: PageContext, errors: FieldErrors, id = '') {
    this.#context = context
    this.#errors = errors
    this.#id = id
  }

  get hasErrors(): boolean {
    return Object.keys(this.#errors).length > 0
  }

  field(field: Field): Html {
    const { name, label, type = 'text', value, hint, autocomplete } = field
    const { isOptional = false, isFilter = false, isFocused = false, isLong = false, aside } = field
    this.#labels.set(name, label)
    const id = this.#idOf(name)
    const sentences = this.#sentences(name)
    const descriptions = [hint && `${id}-hint`, sentences.length > 0 && `${id}-error`]
      .filter(Boolean)
      .join(' ')
    const own = this.#context.textsOf(ACCOUNT_TEXTS)
    const labelled = html`<label for="${id}">${label}${isOptional && html` <span class="optional">(${this.#context.texts.optional})</span>`}</label>`
    const isNewPassword = autocomplete === 'new-password'
    const shared = html`id="${id}" name="${name}" autocomplete="${autocomplete}"${
      !isOptional && !isFilter && html` required`
    }${codeAttributes(field)}${isFocused && html` autofocus`}${
      descriptions !== '' && html` aria-describedby="${descriptions}"`
    }${sentences.length > 0 && html` aria-invalid="true"`}`
    const input = isLong
      ? html`<textarea ${shared} rows="8" spellcheck="false">\n${value}</textarea>`
      : html`<input ${shared} type="${type}"${value !== undefined && html` value="${value}"`}>`
    return html`<div class="field">
${aside === undefined ? labelled : html`<div class="field-head">${labelled}${aside}</div>`}
${hint && html`<p class="hint" id="${id}-hint">${hint}</p>`}
${
  type === 'password'
    ? html`<div class="with-end">${input}<button type="button" class="quiet" data-script="show-password" aria-label="${own.showPassword}" aria-pressed="false" aria-controls="${id}">${icon('eye')}</button></div>`
    : input
}
${isNewPassword && html`<p class="strength" data-script="strength" data-for="${id}" data-least="${this.#context.passwordMinLength}" data-words="${own.strength}" aria-live="polite"></p>`}
${this.#errorOf(name)}
</div>`
  }

  /** One of several values. */
  choice({
    name,
    label,
    options,
    value,
  }: {
    readonly name: string
    readonly label: string
    readonly options: readonly (readonly [value: string, text: string])[]
    readonly value?: string | undefined
  }): Html {
    this.#labels.set(name, label)
    const id = this.#idOf(name)
    const sentences = this.#sentences(name)
    return html`<div class="field">
<label for="${id}">${label}</label>
<select id="${id}" name="${name}"${sentences.length > 0 && html` aria-invalid="true" aria-describedby="${id}-error"`}>${options.map(
      ([each, text]) => html`<option value="${each}"${each === value && html` selected`}>${text}</option>`,
    )}</select>
${this.#errorOf(name)}
</div>`
  }

  /** A group of checkboxes under one name of the API. */
  group(name: string, legend: string, checks: readonly Html[]): Html {
    this.#labels.set(name, legend)
    const id = this.#idOf(name)
    const sentences = this.#sentences(name)
    return html`<fieldset id="${id}" tabindex="-1"${sentences.length > 0 && html` aria-describedby="${id}-error"`}>
<legend>${legend}</legend>
${checks}
${this.#errorOf(name)}
</fieldset>`
  }

  /** A checkbox, which a form sends as `on`. */
  check({
    name,
    label,
    isChecked,
  }: {
    readonly name: string
    readonly label: Html
    readonly isChecked: boolean
  }): Html {
    return html`<label class="check"><input type="checkbox" name="${name}"${isChecked && html` checked`}>${label}</label>`
  }

  /** Every error, with links to the fields. It has the focus when the page opens, so that screen readers begin there. */
  summary(): Html {
    if (!this.hasErrors) return html``
    const items = Object.keys(this.#errors).flatMap(name => {
      const label = this.#labels.get(name)
      return this.#sentences(name).map(text =>
        label === undefined
          ? html`<li>${text}</li>`
          : html`<li><a href="#${this.#idOf(name)}">${label}: ${text}</a></li>`,
      )
    })
    return html`<div class="notice bad" role="alert" tabindex="-1" autofocus>${icon('warning')}<div>
<strong>${this.#context.texts.problem}</strong>
<ul>${items}</ul>
</div></div>`
  }

  #idOf(name: string): string {
    return `${this.#id}${name}`
  }

  #errorOf(name: string): Html | false {
    const sentences = this.#sentences(name)
    return (
      sentences.length > 0 &&
      html`<p class="error" id="${this.#idOf(name)}-error">${sentences.map(text => html`${text} `)}</p>`
    )
  }

  #sentences(name: string): Html[] {
    return (this.#errors[name] ?? []).map(message => errorSentence(this.#context, name, message))
  }
}

export const NO_ERRORS: FieldErrors = {}

/** Tells password managers whose password a form asks for. It is not sent. */
export const usernameField = (email: string): Html =>
  html`<input type="email" autocomplete="username" value="${email}" hidden readonly>`

export const hiddenField = (name: string, value: string): Html =>
  html`<input type="hidden" name="${name}" value="${value}">`

/** Formats of times by language, which are slow to create. */
const timeFormats = new Map<string, Intl.DateTimeFormat>()

const timeFormat = (language: string): Intl.DateTimeFormat => {
  const format =
    timeFormats.get(language) ??
    new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })
  timeFormats.set(language, format)
  return format
}

/** A time in UTC: without script, the page does not know the zone of its reader. @param at ISO 8601 */
export const time = ({ language }: PageContext, at: string): Html =>
  html`<time datetime="${at}">${timeFormat(language).format(new Date(at))} UTC</time>`

const HOUR = 3_600_000

const UNITS = [
  ['day', 24 * HOUR],
  ['hour', HOUR],
  ['minute', HOUR / 60],
] as const

/** A time as people say it, such as "2 hours ago", with the exact one as its title. After a week it is the date. @param at ISO 8601 */
export const ago = (context: PageContext, at: string): Html => {
  const passed = context.now - Date.parse(at)
  if (passed > 7 * 24 * HOUR) return time(context, at)
  const [unit, length] = UNITS.find(each => passed >= each[1]) ?? ['minute', HOUR / 60]
  const relative = new Intl.RelativeTimeFormat(context.language, { numeric: 'auto' })
  const text = relative.format(-Math.max(0, Math.floor(passed / length)), unit)
  return html`<time datetime="${at}" title="${timeFormat(context.language).format(new Date(at))} UTC">${text}</time>`
}

/** What was done, once after a redirect. */
export const noticeOf = (notice: string | undefined): Html | false =>
  notice !== undefined &&
  html`<p class="notice good" role="status" tabindex="-1" autofocus>${icon('check')}<span>${notice}</span></p>`

/** Words of a user agent, and what they name. The first that matches counts: browsers also name those that they are compatible with. */
const BROWSERS = [
  [/\bEdg(?:A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/(?:Chrome|CriOS)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
] as const

const SYSTEMS = [
  [/\bAndroid\b/, 'Android'],
  [/\biPad\b/, 'iPadOS'],
  [/\biPhone\b/, 'iOS'],
  [/\bMacintosh\b/, 'macOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
] as const

/**
 * The device of a client in the words of people, such as "Firefox, Windows". Never text of the user agent itself: a stranger may have chosen
 * it, and the page is the service's.
 */
export const deviceOf = ({ texts }: Pick<PageContext, 'texts'>, userAgent: string | null): string => {
  const nameIn = (names: typeof BROWSERS | typeof SYSTEMS) =>
    names.find(([pattern]) => pattern.test(userAgent ?? ''))?.[1]
  const known = [nameIn(BROWSERS), nameIn(SYSTEMS)].filter(name => name !== undefined)
  return known.length === 0 ? texts.unknownClient : known.join(', ')
}

/** A value to copy, which is selected as a whole. */
export const secretValue = (context: PageContext, value: string): Html => {
  const { copy, copied } = context.textsOf(ACCOUNT_TEXTS)
  return html`<p class="secret"><code>${value}</code><button type="button" class="quiet square" data-script="copy" data-copied="${copied}" aria-label="${copy}">${icon('copy')}</button></p>`
}

/** Buttons to keep what is shown once. The file needs no script. @param copies the selector of the text to copy. */
export const saveButtons = (
  context: PageContext,
  { copies, fileName, file }: Readonly<Record<'copies' | 'fileName' | 'file', string>>,
): Html => {
  const own = context.textsOf(ACCOUNT_TEXTS)
  return html`<div class="trio">
<button type="button" data-script="copy" data-copy="${copies}" data-copied="${own.copied}">${icon('copy')}${own.copy}</button>
<a class="button" download="${fileName}" href="data:text/plain;charset=utf-8,${encodeURIComponent(file)}">${icon('download')}${own.download}</a>
<button type="button" data-script="print">${icon('print')}${own.print}</button>
</div>`
}

interface Button {
  /** The URL of the form, relative to the service. */
  readonly action: string
  readonly text: string
  /** What the button does to which one of a list, for screen readers. */
  readonly label?: string
  readonly className?: 'primary' | 'quiet' | 'danger'
  readonly id?: string
}

/** A form of one button. */
export const button = ({ root }: PageContext, { action, text, label, className, id }: Button): Html =>
  html`<form method="post" action="${root}${action}">${id !== undefined && hiddenField('id', id)}<button${
    className !== undefined && html` class="${className}"`
  }${label !== undefined && html` aria-label="${label}"`}>${text}</button></form>`

export type Link = readonly [href: string, text: string]

export const links = (items: readonly Link[]): Html =>
  html`<ul class="links">${items.map(([href, text]) => html`<li><a href="${href}">${text}</a></li>`)}</ul>`

export const backToSecurity = ({ texts, root }: PageContext): Html =>
  links([[`${root}security`, texts.backToSecurity]])

interface CardParts {
  /** Above the title. */
  readonly emblem?: Html
  /** At the end of the box. */
  readonly foot?: HtmlValue
}

export const emblem = (name: IconName, state: 'good' | 'bad' | '' = ''): Html =>
  html`<span class="emblem ${state}">${icon(name)}</span>`

/** A box with a title. */
export const cardWith = (
  { emblem, foot }: CardParts,
  title: string,
  ...lines: readonly HtmlValue[]
): Html => html`<div class="card">
<div class="card-body">
<div class="heading middle">${emblem}<h1>${title}</h1></div>
${onLines(lines)}</div>
${foot && html`<div class="card-foot">${foot}</div>\n`}</div>`

export const card = (title: string, ...lines: readonly HtmlValue[]): Html => cardWith({}, title, ...lines)

const onLines = (values: readonly HtmlValue[]): readonly Html[] => values.map(value => html`${value}\n`)

interface FormPage extends Pick<Page, 'title' | 'isSignedIn' | 'hasScripts'> {
  readonly emblem?: Html
  /** Above the form, each on a line. */
  readonly texts?: readonly HtmlValue[]
  /** The URL of the form, relative to the service. */
  readonly action: string
  readonly fields: readonly HtmlValue[]
  readonly button: string
  /** Below the button. */
  readonly instead?: HtmlValue
  /** Below the form. */
  readonly after?: readonly HtmlValue[]
  /** At the end of the box. */
  readonly next?: Html
  /** Below the box. */
  readonly below?: Html
}

/** A page with one form. @param form with the fields of the page, which are rendered already. */
export const formPage = (
  { root }: PageContext,
  form: Form,
  { emblem, texts = [], action, fields, button: text, instead, after = [], next, below, ...page }: FormPage,
): Page => ({
  ...page,
  hasErrors: form.hasErrors,
  body: html`${cardWith(
    { ...(emblem !== undefined && { emblem }), foot: next },
    page.title,
    form.summary(),
    ...texts,
    html`<form class="stack" method="post" action="${root}${action}">
${onLines(fields)}<button class="primary block">${text}</button>
${instead && html`${instead}\n`}</form>`,
    ...after,
  )}
${below}`,
})

/** A page that says something, and has no form. @param next the link to another page. @param further links. */
export const messagePage = (
  { root, hasPages, hasSession }: PageContext,
  {
    title,
    text,
    next,
    further = [],
    emblem,
  }: {
    readonly title: string
    readonly text: string | readonly Html[]
    readonly next: Link
    readonly further?: readonly Link[]
    readonly emblem?: Html
  },
): Page => ({
  title,
  isSignedIn: hasSession,
  body: cardWith(
    emblem === undefined ? {} : { emblem },
    title,
    html`<p>${text}</p>`,
    hasPages &&
      html`<div class="stack">
<a class="button primary block" href="${root}${next[0]}">${next[1]}</a>
${further.map(([path, label]) => html`<a class="button block" href="${root}${path}">${label}</a>\n`)}</div>`,
  ),
})

export { Html, html } from './html.ts'

/** How the pages for sign-in and sign-up offer a sign-in method. */
export interface SignInPart {
  /** What the browser offers in the field of the e-mail besides names of users (WebAuthn §5.1.4). */
  readonly autofill?: 'webauthn'
  /** Below the form: to a page of the feature. */
  readonly link?: (context: PageContext) => Link
  /** Below the button of the form: sends its e-mail to a page of the feature, without a password. */
  readonly instead?: (context: PageContext) => Link
  /** Buttons below the divider. */
  readonly button?: (context: PageContext) => Html
  /** Buttons below the divider of the page to sign up, for a method that opens accounts. */
  readonly signUpButton?: (context: PageContext) => Html
}
