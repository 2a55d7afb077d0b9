/** Pages between the steps of a flow: the way back to an application, the code after a password, signing out, unknown pages. */

import type { FieldErrors } from '#base/errors'
import { fill } from '#base/texts'
import { type Html, html } from './html.ts'
import {
  avatar,
  card,
  Form,
  formPage,
  hiddenField,
  links,
  messagePage,
  NO_ERRORS,
  type Page,
  type PageContext,
} from './layout.ts'
import { withReturn } from './return-links.ts'

const hostOf = (url: string): string => new URL(url).host

/** A form of one main button. */
const action = ({ root }: PageContext, path: string, text: string): Html =>
  html`<form method="post" action="${root}${path}"><button class="primary block">${text}</button></form>`

/**
 * Leads back to the application. A page, because browsers apply the policy for forms to a redirect after a POST, and to where the
 * application redirects. @param returnTo a URL that was checked.
 */
export const continuePage = (context: PageContext, returnTo: string): Page => {
  const own = context.texts.flows
  const title = fill(own.continueTo, { host: hostOf(returnTo) })
  return {
    title,
    refreshTo: returnTo,
    body: html`${card(title, html`<p>${own.continueText}</p>`)}
${links([[returnTo, title]])}`,
  }
}

/** Names the account before the way back, so that nobody goes on in an account that somebody else has signed this browser in to. */
export const signedInAlreadyPage = (context: PageContext, email: string, returnTo: string): Page => {
  const own = context.texts.flows
  return {
    title: own.signedInTitle,
    body: html`${card(
      own.signedInTitle,
      html`<p>${fill(own.signedInText, { email })}</p>`,
      html`<p><a class="button primary block" href="${returnTo}">${fill(own.continueTo, { host: hostOf(returnTo) })}</a></p>`,
    )}
${links([[context.root + withReturn('sign-out', context), own.otherAccount]])}`,
  }
}

/** The page with the button that signs out. */
export const signOutPage = (context: PageContext, email: string | undefined): Page => {
  const own = context.texts.flows
  const { root, texts, returnTo } = context
  return {
    title: own.signOutTitle,
    body: html`${card(
      own.signOutTitle,
      html`<p>${email === undefined ? texts.severalUsersText : fill(own.signOutText, { email })}</p>`,
      action(context, withReturn('sign-out', context), texts.signOut),
    )}
${links([[returnTo ?? `${root}security`, own.staySignedIn]])}`,
  }
}

export const signedOutPage = (context: PageContext): Page => {
  const own = context.texts.flows
  const { texts, returnTo, root } = context
  return {
    title: own.signedOutTitle,
    body: html`${card(own.signedOutTitle, html`<p>${own.signedOutText}</p>`)}
${links([
  ...(returnTo === null ? [] : [[returnTo, fill(own.continueTo, { host: hostOf(returnTo) })] as const]),
  [root + withReturn('sign-in', context), texts.signIn],
])}`,
  }
}

export interface CodeState {
  readonly email: string
  /** Where the form goes, below the service. */
  readonly path: string
  /** Hidden fields that keep the first step. */
  readonly firstStep: Readonly<Record<string, string>>
  readonly errors?: FieldErrors
}

/** The second step of a sign-in, which never asks for the first one again. */
export const codePage = (
  context: PageContext,
  { email, path, firstStep, errors = NO_ERRORS }: CodeState,
): Page => {
  const own = context.texts.flows
  const form = new Form(context, errors)
  const field = form.field({
    name: 'code',
    label: context.texts.code,
    autocomplete: 'one-time-code',
    isCode: true,
    isNumeric: true,
    isFocused: !form.hasErrors,
  })
  const recovery = new Form(context, NO_ERRORS, 'recovery-')
  const action = withReturn(path, context)
  const kept = Object.entries(firstStep).map(([name, value]) => hiddenField(name, value))
  return formPage(context, form, {
    title: own.codeTitle,
    texts: [
      html`<p>${fill(own.codeText, { product: context.product })}</p>`,
      html`<p class="account-chip">${avatar(email)}<span>${email}</span><a href="${context.root}${withReturn('sign-in', context)}">${own.notYou}</a></p>`,
    ],
    action,
    fields: [kept, field],
    button: own.codeButton,
    after: [
      html`<details class="disclosure">
<summary>${own.recovery}</summary>
<form method="post" action="${context.root}${action}">
${kept}
${recovery.field({ name: 'code', label: own.recoveryCode, hint: own.recoveryHint, autocomplete: 'off', isCode: true })}
<button>${own.recoveryButton}</button>
</form>
</details>`,
    ],
  })
}

/** Replaces the second step once the first one does not count any more. */
export const stepEndedPage = (context: PageContext): Page => {
  const own = context.texts.flows
  return {
    ...messagePage(context, {
      title: own.stepEnded,
      text: own.stepEndedText,
      next: [withReturn('sign-in', context), context.texts.signIn],
    }),
    hasErrors: true,
  }
}

/** For browsers, at a URL that the service does not have. */
export const notFoundPage = (context: PageContext): Page => {
  const own = context.texts.flows
  const { texts, hasSession } = context
  return {
    ...messagePage(context, {
      title: own.notFoundTitle,
      text: own.notFoundText,
      next: hasSession ? ['security', texts.toSecurity] : ['sign-in', texts.signIn],
    }),
    hasErrors: true,
  }
}
