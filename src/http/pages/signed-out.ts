/** Pages of users who are not signed in: sign-in, sign-up, forgotten passwords, links of mails, errors. */

import type { FieldErrors } from '#base/errors'
import { fill } from '#base/texts'
import { fillHtml, type Html, html } from './html.ts'
import {
  card,
  Form,
  formPage,
  hiddenField,
  type Link,
  links,
  messagePage,
  NO_ERRORS,
  type Page,
  type PageContext,
  SIGNED_IN,
  type SignInPart,
  usernameField,
} from './layout.ts'
import { withReturn } from './return-links.ts'
import type { Texts } from './texts.ts'

/** Recovery codes are accepted too, so the field takes text. */
export const oneTimeCodeField = ({ texts }: PageContext) =>
  ({
    name: 'code',
    label: texts.code,
    hint: texts.codeHint,
    autocomplete: 'one-time-code',
    isCode: true,
  }) as const

const emailField = ({ texts }: PageContext, email: string | undefined) =>
  ({ name: 'email', label: texts.email, type: 'email', value: email, autocomplete: 'username' }) as const

export interface SignInState {
  readonly email?: string | undefined
  readonly errors?: FieldErrors
}

/** The buttons of sign-in methods, below one divider. */
const otherWays = ({ texts }: PageContext, buttons: readonly Html[]): Html | false =>
  buttons.length > 0 && html`<p class="or">${texts.or}</p>\n<div class="providers">\n${buttons}</div>`

/** Submit buttons for methods that need the e-mail of the form alone. Below the main one, which the Enter key presses. */
const insteadOfPassword = (choices: readonly Link[]): Html | false =>
  choices.length > 0 &&
  html`<p class="second-choice">${choices.map(
    ([path, text], index) =>
      html`${index > 0 && ' · '}<button formaction="${path}" formnovalidate>${text}</button>`,
  )}</p>`

/** @param parts the sign-in methods of features. */
export const signInPage = (
  context: PageContext,
  parts: readonly SignInPart[],
  { email, errors = NO_ERRORS }: SignInState = {},
): Page => {
  if (context.hasSeveralUsers) return severalUsersPage(context)
  const { texts, root } = context
  const form = new Form(context, errors)
  const fields = [
    form.field({
      ...emailField(context, email),
      autocomplete: ['username', ...parts.flatMap(({ autofill = [] }) => autofill)].join(' '),
    }),
    form.field({
      name: 'password',
      label: texts.password,
      type: 'password',
      autocomplete: 'current-password',
      aside: html`<a href="${root}${withReturn('forgot-password', context)}">${texts.forgotLink}</a>`,
    }),
  ]
  return formPage(context, form, {
    title: texts.signIn,
    hasScripts: true,
    action: withReturn('sign-in', context),
    fields: [fields],
    button: texts.signIn,
    instead: insteadOfPassword(parts.flatMap(({ instead }) => (instead ? [instead(context)] : []))),
    after: [
      otherWays(
        context,
        parts.flatMap(({ button }) => button?.(context) ?? []),
      ),
    ],
    next: links([
      ...(context.hasSignUpPage ? [[root + withReturn('sign-up', context), texts.signUp] as const] : []),
      ...parts.flatMap(({ link }) => (link === undefined ? [] : [link(context)])),
    ]),
  })
}

/** The page after a sign-in that does not count: the browser does not send its cookie, or also that of another user. */
export const signInLostPage = (context: PageContext): Page => {
  if (context.hasSeveralUsers) return severalUsersPage(context)
  const { signInLost: title, signInLostText: text, signIn } = context.texts
  return messagePage(context, { title, text, next: [withReturn('sign-in', context), signIn] })
}

/** Replaces the page to sign in, where another session would not help. */
const severalUsersPage = (context: PageContext): Page => {
  const { severalUsers: title, severalUsersText, signOutOfAll } = context.texts
  return {
    title,
    hasErrors: true,
    body: card(
      title,
      html`<p>${severalUsersText}</p>
<form method="post" action="${context.root}${withReturn('sign-out', context)}">
<button class="primary block">${signOutOfAll}</button>
</form>`,
    ),
  }
}

export interface SignUpState {
  readonly email?: string | undefined
  readonly firstName?: string | undefined
  readonly lastName?: string | undefined
  readonly errors?: FieldErrors
}

/** @param parts the sign-in methods of features. */
export const signUpPage = (
  context: PageContext,
  parts: readonly SignInPart[],
  { minLength, termsUrl }: { readonly minLength: number; readonly termsUrl: string | null },
  { email, firstName, lastName, errors = NO_ERRORS }: SignUpState = {},
): Page => {
  const { texts, root } = context
  const form = new Form(context, errors)
  const name = { autocomplete: 'given-name', isOptional: true } as const
  const fields = [
    form.field(emailField(context, email)),
    form.field({
      name: 'password',
      label: texts.password,
      type: 'password',
      hint: fill(texts.passwordHint, { length: minLength }),
      autocomplete: 'new-password',
    }),
    form.field({ ...name, name: 'firstName', label: texts.firstName, value: firstName }),
    form.field({
      ...name,
      name: 'lastName',
      label: texts.lastName,
      value: lastName,
      autocomplete: 'family-name',
    }),
  ]
  const terms = fillHtml(texts.terms, { link: html`<a href="${termsUrl}">${texts.termsLink}</a>` })
  return formPage(context, form, {
    title: texts.signUp,
    action: withReturn('sign-up', context),
    fields: [fields, termsUrl !== null && html`<p>${terms}</p>`],
    button: texts.signUpButton,
    after: [
      otherWays(
        context,
        parts.flatMap(({ signUpButton }) => signUpButton?.(context) ?? []),
      ),
    ],
    next: links([[root + withReturn('sign-in', context), texts.toSignIn]]),
  })
}

/** The page after a sign-up. It does not show whether the address had an account. */
export const signUpSentPage = (context: PageContext, email: string): Page => {
  const { signUpSent: title, signUpSentText, backToSignIn } = context.texts
  return messagePage(context, {
    title,
    text: fill(signUpSentText, { email }),
    next: [withReturn('sign-in', context), backToSignIn],
  })
}

export type EmailState = Pick<SignInState, 'email' | 'errors'>

/** A page that asks for the e-mail alone. */
export const emailPage = (
  context: PageContext,
  { email, errors = NO_ERRORS }: EmailState,
  { path, title, text, button }: Readonly<Record<'path' | 'title' | 'text' | 'button', string>>,
): Page => {
  const { texts, root } = context
  const form = new Form(context, errors)
  const field = form.field(emailField(context, email))
  return formPage(context, form, {
    title,
    texts: [html`<p>${text}</p>`],
    action: withReturn(path, context),
    fields: [field],
    button,
    next: links([[root + withReturn('sign-in', context), texts.backToSignIn]]),
  })
}

export const forgotPasswordPage = (context: PageContext, state: EmailState = {}): Page => {
  const { forgot: title, forgotText: text, forgotButton: button } = context.texts
  return emailPage(context, state, { path: 'forgot-password', title, text, button })
}

export const forgotPasswordSentPage = (context: PageContext): Page => {
  const { forgotSent: title, forgotSentText: text, backToSignIn } = context.texts
  return messagePage(context, { title, text, next: [withReturn('sign-in', context), backToSignIn] })
}

export interface ResetState {
  readonly token: string
  readonly minLength: number
  readonly wantsCode?: boolean
  readonly errors?: FieldErrors
}

export const resetPasswordPage = (
  context: PageContext,
  { token, minLength, wantsCode = false, errors = NO_ERRORS }: ResetState,
): Page => {
  const { texts, root } = context
  const form = new Form(context, errors)
  const fields = [
    form.field({
      name: 'password',
      label: texts.newPassword,
      type: 'password',
      hint: fill(texts.passwordHint, { length: minLength }),
      autocomplete: 'new-password',
    }),
    wantsCode && form.field(oneTimeCodeField(context)),
  ]
  return formPage(context, form, {
    title: texts.reset,
    texts: [html`<p>${wantsCode ? texts.resetSecondStep : texts.resetText}</p>`],
    action: 'reset-password',
    fields: [hiddenField('token', token), fields],
    button: texts.resetButton,
    next: links([[root + withReturn('forgot-password', context), texts.askAgain]]),
  })
}

export interface ConfirmEmailState {
  readonly token: string
  /** What the token is about. */
  readonly subject: keyof Texts['confirmEmailText']
  readonly email: string
  /** Whether the browser is not signed in to the account. */
  readonly needsPassword: boolean
  readonly wantsCode?: boolean
  readonly errors?: FieldErrors
}

/** The form for somebody who does not know the account. Also shown where the browser is signed in to it: a stranger may have signed it in. */
const notMe = ({ texts, root }: PageContext, token: string, subject: ConfirmEmailState['subject']): Html =>
  html`<div class="card"><div class="card-body">
<h2>${texts.notMe}</h2>
<p>${texts.notMeText[subject]}</p>
<form method="post" action="${root}account/verify-email/not-me">
${hiddenField('token', token)}
<button class="block">${texts.notMe}</button>
</form>
</div></div>`

export const confirmEmailPage = (
  context: PageContext,
  { token, subject, email, needsPassword, wantsCode = false, errors = NO_ERRORS }: ConfirmEmailState,
): Page => {
  const { texts } = context
  const form = new Form(context, errors)
  const fields = [
    needsPassword &&
      form.field({
        name: 'password',
        label: texts.password,
        type: 'password',
        hint: texts.confirmEmailPasswordHint[subject],
        autocomplete: 'current-password',
      }),
    wantsCode && form.field(oneTimeCodeField(context)),
  ]
  return formPage(context, form, {
    title: texts.confirmEmail,
    texts: [
      html`<p>${fill(texts.confirmEmailText[subject], { email })}</p>`,
      wantsCode && html`<p>${texts.confirmEmailSecondStep}</p>`,
    ],
    action: 'account/verify-email/confirm',
    fields: [
      needsPassword && subject !== 'emailChange' && usernameField(email),
      hiddenField('token', token),
      fields,
    ],
    button: texts.confirmEmailButton,
    below: notMe(context, token, subject),
  })
}

const returnLink = ({ texts }: PageContext, returnTo: string): Link => [
  returnTo,
  fill(texts.flows.continueTo, { host: new URL(returnTo).host }),
]

/** @param opensSession whether the confirmation has signed in. */
export const emailConfirmedPage = (context: PageContext, email: string, opensSession: boolean): Page => {
  const { emailConfirmed: title, emailConfirmedText, toSecurity } = context.texts
  const next = [opensSession ? `security?${SIGNED_IN}` : 'security', toSecurity] as const
  const { returnTo } = context
  const page = messagePage(context, { title, text: fill(emailConfirmedText, { email }), next })
  return returnTo === null
    ? page
    : { ...page, body: html`${page.body}${links([returnLink(context, returnTo)])}` }
}

export const emailRejectedPage = (context: PageContext, rejected: ConfirmEmailState['subject']): Page => {
  const { notMeDone: title, notMeDoneText, backToSignIn } = context.texts
  // The session of an account that is removed has ended.
  const next = rejected === 'emailChange' ? wayBack(context) : (['sign-in', backToSignIn] as const)
  return messagePage(context, { title, text: notMeDoneText[rejected], next })
}

const wayBack = (context: PageContext): Link =>
  context.hasSession
    ? ['security', context.texts.backToSecurity]
    : [withReturn('sign-in', context), context.texts.backToSignIn]

/**
 * The page of a link that does not work. It may just have worked: a second click on the button of its page sends it again. It says
 * the same of every link, so that nobody learns which ones were real.
 */
const deadLinkPage = (context: PageContext, further: readonly Link[] = []): Page => {
  const { deadLink: title, deadLinkText: text } = context.texts
  return messagePage(context, { title, text, next: wayBack(context), further })
}

/** The link of a mail to reset the password, with the way to another one. */
export const deadResetPage = (context: PageContext): Page =>
  deadLinkPage(context, [[withReturn('forgot-password', context), context.texts.askAgain]])

/** @param title by default that of any error. */
export const errorPage = (
  context: PageContext,
  errors: FieldErrors,
  title: string = context.texts.failed,
): Page => {
  // Links of mails alone have a token.
  if ('token' in errors) return deadLinkPage(context)
  const { root, hasPages, hasSession } = context
  const [path, text] = wayBack(context)
  return {
    title,
    hasErrors: true,
    isSignedIn: hasSession,
    body: html`${card(title, new Form(context, errors).summary())}
${hasPages && links([[root + path, text]])}`,
  }
}
