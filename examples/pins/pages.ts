/** PINs on the hosted pages: a page to sign in, and one to set the PIN. */
import {
  backToSecurity,
  type FeaturePages,
  type FieldErrors,
  Form,
  html,
  links,
  NO_ERRORS,
  type Page,
  type PageContext,
} from '#http/pages/feature-pages'

const TEXTS = {
  en: {
    signIn: 'Sign in with a PIN',
    set: 'Set a PIN',
    about: 'Four digits sign you in, without the password.',
    email: 'E-mail',
    pin: 'PIN',
    code: 'Code from your authenticator app',
    save: 'Set the PIN',
  },
  de: {
    signIn: 'Mit einer PIN anmelden',
    set: 'PIN festlegen',
    about: 'Vier Ziffern melden Sie an, ohne das Passwort.',
    email: 'E-Mail',
    pin: 'PIN',
    code: 'Code aus Ihrer Authenticator-App',
    save: 'PIN festlegen',
  },
}

interface SignInState {
  readonly email?: string
  /** Whether the user has an authenticator app. */
  readonly wantsCode?: boolean
  readonly errors?: FieldErrors
}

export const pinSignInPage = (
  context: PageContext,
  { email, wantsCode = false, errors = NO_ERRORS }: SignInState = {},
): Page => {
  const texts = TEXTS[context.language]
  const form = new Form(context, errors)
  const fields = [
    form.field({ name: 'email', label: texts.email, type: 'email', value: email, autocomplete: 'username' }),
    form.field({ name: 'pin', label: texts.pin, type: 'password', autocomplete: 'current-password' }),
    wantsCode && form.field({ name: 'code', label: texts.code, autocomplete: 'one-time-code', isCode: true }),
  ]
  return {
    title: texts.signIn,
    hasErrors: form.hasErrors,
    body: html`<div class="card">
<h1>${texts.signIn}</h1>
${form.summary()}
<form method="post" action="${context.root}sign-in/pin">
${fields}
<button class="main">${context.texts.signIn}</button>
</form>
</div>
${links([[`${context.root}sign-in`, context.texts.backToSignIn]])}`,
  }
}

export const setPinPage = (context: PageContext, errors: FieldErrors = NO_ERRORS): Page => {
  const texts = TEXTS[context.language]
  const form = new Form(context, errors)
  const field = form.field({ name: 'pin', label: texts.pin, type: 'password', autocomplete: 'off' })
  return {
    title: texts.set,
    isSignedIn: true,
    hasErrors: form.hasErrors,
    body: html`<h1>${texts.set}</h1>
${form.summary()}
<form method="post" action="${context.root}security/pin">
${field}
<button class="main">${texts.save}</button>
</form>
${backToSecurity(context)}`,
  }
}

export default {
  errors: { en: { wrongPin: 'The PIN is wrong.' }, de: { wrongPin: 'Die PIN ist falsch.' } },
  notices: { en: { pinSet: 'Your PIN is set.' }, de: { pinSet: 'Ihre PIN ist festgelegt.' } },
  signIn: { pin: { link: ({ language, root }) => [`${root}sign-in/pin`, TEXTS[language].signIn] } },
  security: {
    path: '/account/methods',
    isOfFactor: true,
    section({ language, root }) {
      const { pin, about, set } = TEXTS[language]
      return html`<section>
<h2>${pin}</h2>
<p>${about}</p>
<p><a href="${root}security/pin">${set}</a></p>
</section>`
    },
  },
} satisfies FeaturePages
