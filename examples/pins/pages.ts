/** PINs on the hosted pages: a page to sign in, and one to set the PIN. */
import {
  backToSecurity,
  defineTexts,
  type FeaturePages,
  type FieldErrors,
  Form,
  formPage,
  html,
  links,
  NO_ERRORS,
  type Page,
  type PageContext,
  row,
} from '#http/pages/feature-pages'

const TEXTS = defineTexts('pins', {
  en: {
    signIn: 'Sign in with a PIN',
    set: 'Set a PIN',
    about: 'Four digits sign you in, without the password.',
    email: 'E-mail',
    pin: 'PIN',
    code: 'Code from your authenticator app',
    save: 'Set the PIN',
    errors: { wrongPin: 'The PIN is wrong.' },
    notices: { pinSet: 'Your PIN is set.' },
  },
  de: {
    signIn: 'Mit einer PIN anmelden',
    set: 'PIN festlegen',
    about: 'Vier Ziffern melden Sie an, ohne das Passwort.',
    email: 'E-Mail',
    pin: 'PIN',
    code: 'Code aus Ihrer Authenticator-App',
    save: 'PIN festlegen',
    errors: { wrongPin: 'Die PIN ist falsch.' },
    notices: { pinSet: 'Ihre PIN ist festgelegt.' },
  },
})

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
  const texts = context.textsOf(TEXTS)
  const form = new Form(context, errors)
  const fields = [
    form.field({ name: 'email', label: texts.email, type: 'email', value: email, autocomplete: 'username' }),
    form.field({ name: 'pin', label: texts.pin, type: 'password', autocomplete: 'current-password' }),
    wantsCode && form.field({ name: 'code', label: texts.code, autocomplete: 'one-time-code', isCode: true }),
  ]
  return formPage(context, form, {
    title: texts.signIn,
    action: 'sign-in/pin',
    fields,
    button: context.texts.signIn,
    next: links([[`${context.root}sign-in`, context.texts.backToSignIn]]),
  })
}

export const setPinPage = (context: PageContext, errors: FieldErrors = NO_ERRORS): Page => {
  const texts = context.textsOf(TEXTS)
  const form = new Form(context, errors)
  const field = form.field({ name: 'pin', label: texts.pin, type: 'password', autocomplete: 'off' })
  return formPage(context, form, {
    title: texts.set,
    isSignedIn: true,
    action: 'security/pin',
    fields: [field],
    button: texts.save,
    next: backToSecurity(context),
  })
}

export default {
  texts: TEXTS,
  signIn: { pin: { link: ({ textsOf, root }) => [`${root}sign-in/pin`, textsOf(TEXTS).signIn] } },
  security: {
    path: '/account/methods',
    section: 'signIn',
    rows({ textsOf, root }) {
      const { pin, about, set } = textsOf(TEXTS)
      const action = html`<a class="button" href="${root}security/pin">${set}</a>`
      return [row({ title: pin, value: about, action })]
    },
  },
} satisfies FeaturePages
