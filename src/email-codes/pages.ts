/** Mailed codes on the hosted pages: a link of the sign-in page, and the pages behind it. */
import type { FieldErrors } from '../errors.ts'
import type { FeaturePages } from '../pages/feature-pages.ts'
import { Form, hiddenField, html, links, NO_ERRORS, type Page, type PageContext } from '../pages/layout.ts'
import { codeField, type EmailState, emailPage } from '../pages/signed-out.ts'

const en = {
  signIn: 'Sign in with a code by e-mail',
  text: 'We send a code to the e-mail of your account.',
  send: 'Send the code',
  sent: 'If there is an account with this e-mail, a code is on its way. It works for ten minutes.',
  code: 'Code from the mail',
  codeHint: 'Eight digits.',
  secondStep:
    'Your account needs a code from your authenticator app too. Please enter the code from the mail again, and that one.',
  again: 'Send another code',
}

const de: typeof en = {
  signIn: 'Mit Code per E-Mail anmelden',
  text: 'Wir senden einen Code an die E-Mail-Adresse Ihres Kontos.',
  send: 'Code senden',
  sent: 'Wenn es ein Konto mit dieser E-Mail-Adresse gibt, ist ein Code unterwegs. Er gilt zehn Minuten.',
  code: 'Code aus der Mail',
  codeHint: 'Acht Ziffern.',
  secondStep:
    'Ihr Konto braucht auch einen Code aus Ihrer Authenticator-App. Bitte geben Sie den Code aus der Mail noch einmal ein, und diesen.',
  again: 'Neuen Code senden',
}

const TEXTS = { en, de }

export const requestEmailCodePage = (context: PageContext, state: EmailState = {}): Page => {
  const { signIn: title, text, send: button } = TEXTS[context.language]
  return emailPage(context, state, { path: 'sign-in/email-code', title, text, button })
}

export interface EmailCodeState {
  readonly email: string
  readonly wantsCode?: boolean
  readonly errors?: FieldErrors
}

/** The second step: the code from the mail. */
export const emailCodePage = (
  context: PageContext,
  { email, wantsCode = false, errors = NO_ERRORS }: EmailCodeState,
): Page => {
  const { texts, root } = context
  const own = TEXTS[context.language]
  const form = new Form(context, errors)
  const fields = [
    form.field({
      name: 'emailCode',
      label: own.code,
      hint: own.codeHint,
      autocomplete: wantsCode ? 'off' : 'one-time-code',
      isCode: true,
    }),
    wantsCode && form.field(codeField(context)),
  ]
  return {
    title: own.signIn,
    hasErrors: form.hasErrors,
    body: html`<div class="card">
<h1>${own.signIn}</h1>
${form.summary()}
<p>${wantsCode ? own.secondStep : own.sent}</p>
<form method="post" action="${root}sign-in/email-code/confirm">
${hiddenField('email', email)}
${fields}
<button class="main">${texts.signIn}</button>
</form>
</div>
${links([[`${root}sign-in/email-code`, own.again]])}`,
  }
}

export default {
  errors: {
    en: { wrongEmailCode: 'The code is wrong, has expired or was used already.' },
    de: { wrongEmailCode: 'Der Code ist falsch, abgelaufen oder schon benutzt.' },
  },
  signIn: {
    emailCode: {
      link: ({ root, language }) => [`${root}sign-in/email-code`, TEXTS[language].signIn],
    },
  },
} satisfies FeaturePages
