/** The page to sign in to the console. */
import type { FieldErrors } from '#base/errors'
import { Form, html, type Page, type PageContext, usernameField } from '#http/pages/feature-pages'
import { cardWith, emblem, formPage } from '#http/pages/layout'
import { withReturn } from '#http/pages/return-links'
import { textsOf } from './frame.ts'

export type SignInNotice = 'signInAgain' | 'signInLost' | null

/** @param hasAccounts whether users can sign in with their account. */
export const signInPage = (
  context: PageContext,
  errors: FieldErrors,
  notice: SignInNotice,
  hasAccounts: boolean,
): Page => {
  const texts = textsOf(context)
  const form = new Form(context, errors)
  const field = form.field({
    name: 'adminKey',
    label: texts.adminKey,
    type: 'password',
    hint: texts.adminKeyHint,
    autocomplete: 'current-password',
  })
  return formPage(context, form, {
    title: texts.signIn,
    texts: [notice !== null && html`<p role="status">${texts[notice]}</p>`],
    action: withReturn('console/sign-in', context),
    fields: [usernameField(texts.console), field],
    button: texts.signInButton,
    after: [
      hasAccounts &&
        html`<form class="stack" method="post" action="${context.root}${withReturn('console/sign-in/account', context)}">
<p class="or">${context.texts.or}</p>
<button class="block">${texts.withAccount}</button>
<p class="hint">${texts.withAccountHint}</p>
</form>`,
    ],
  })
}

/** An error of somebody who is not signed in to the console. */
export const signInFailedPage = (context: PageContext, errors: FieldErrors): Page => {
  const title = context.texts.failed
  return {
    title,
    hasErrors: true,
    body: cardWith(
      { emblem: emblem('warning', 'bad') },
      title,
      new Form(context, errors).summary(),
      html`<a class="button primary block" href="${context.root}console/sign-in">${textsOf(context).signIn}</a>`,
    ),
  }
}
