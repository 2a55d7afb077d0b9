/** Other providers on the hosted pages: buttons of the pages for sign-in and sign-up, a section of the security page, and the pages around a callback. */
import type { Static } from '@sinclair/typebox'
import type { FieldErrors } from '#base/errors'
import { defineTexts, fill } from '#base/texts'
import type { FeaturePages } from '#http/pages/feature-pages'
import {
  ago,
  button,
  card,
  Form,
  formPage,
  type Html,
  html,
  links,
  NO_ERRORS,
  type Page,
  type PageContext,
  time,
} from '#http/pages/layout'
import { withReturn } from '#http/pages/return-links'
import { row } from '#http/pages/rows'
import { oneTimeCodeField } from '#http/pages/signed-out'
import type { Identity as IdentitySchema } from './routes/schemas.ts'

const TEXTS = defineTexts('identities', {
  en: {
    signIn: 'Sign in with {name}',
    signUp: 'Sign up with {name}',
    continueTo: 'Continue to {name}',
    continueText: 'You are being taken to the provider. If nothing happens, use the link.',
    linked: 'Linked',
    notLinked: 'Not linked',
    another: 'Another account',
    linkShort: 'Link',
    link: 'Link {name}',
    remove: 'Unlink',
    removeOf: 'Unlink {name}',
    taken: 'You have an account already',
    takenText:
      'There is an account with {email}. Sign in to it as you did before. After that you can link {name}.',
    linkTitle: 'Link {name}',
    linkText: 'The account {email} of {name} will sign in to your account from now on.',
    linkUnconfirmedText:
      'An account of {name} will sign in to your account from now on. It names the address {email}, but {name} has not confirmed that: it may be somebody else’s account. Link it only if you have just signed in to {name} yourself.',
    notNow: 'Not now',
    codeText: '{name} has confirmed who you are. Your account needs a code too.',
    errors: {
      identityNotFound: 'This provider is unlinked already.',
      wrongProviderFlow:
        'This sign-in is not valid any more, or began in another browser. Please begin again.',
      providerRejected: 'The provider has not confirmed who you are. Please begin again.',
      providerUnavailable: 'The provider is not available. Please try again, or sign in in another way.',
      providerEmailUnusable:
        'The provider confirms no e-mail for you. Please sign up first, then link the provider.',
      providerSignUpOff: 'Nobody can sign up with this provider. Please sign up first, then link it.',
      providerNotFound: 'There is no such provider.',
      identityTaken: 'This account of the provider is linked to an account already.',
      tooManyIdentities: 'You have 20 links. Unlink one first.',
    },
    notices: { identityLinked: 'The provider is linked.', identityRemoved: 'The provider is unlinked.' },
  },
  de: {
    signIn: 'Mit {name} anmelden',
    signUp: 'Mit {name} registrieren',
    continueTo: 'Weiter zu {name}',
    continueText: 'Sie werden zum Anbieter weitergeleitet. Wenn nichts geschieht, verwenden Sie den Link.',
    linked: 'Verbunden',
    notLinked: 'Nicht verbunden',
    another: 'Weiteres Konto',
    linkShort: 'Verbinden',
    link: '{name} verbinden',
    remove: 'Trennen',
    removeOf: '{name} trennen',
    taken: 'Sie haben schon ein Konto',
    takenText:
      'Es gibt ein Konto mit {email}. Melden Sie sich dort wie bisher an. Danach können Sie {name} verbinden.',
    linkTitle: '{name} verbinden',
    linkText: 'Das Konto {email} von {name} meldet ab jetzt bei Ihrem Konto an.',
    linkUnconfirmedText:
      'Ein Konto von {name} meldet ab jetzt bei Ihrem Konto an. Es nennt die Adresse {email}, aber {name} hat das nicht bestätigt: Es kann das Konto von jemand anderem sein. Verbinden Sie es nur, wenn Sie sich gerade selbst bei {name} angemeldet haben.',
    notNow: 'Jetzt nicht',
    codeText: '{name} hat Sie bestätigt. Ihr Konto braucht auch einen Code.',
    errors: {
      identityNotFound: 'Dieser Anbieter ist schon getrennt.',
      wrongProviderFlow:
        'Diese Anmeldung gilt nicht mehr, oder sie hat in einem anderen Browser begonnen. Bitte beginnen Sie noch einmal.',
      providerRejected: 'Der Anbieter hat Sie nicht bestätigt. Bitte beginnen Sie noch einmal.',
      providerUnavailable:
        'Der Anbieter ist nicht erreichbar. Bitte versuchen Sie es noch einmal, oder melden Sie sich anders an.',
      providerEmailUnusable:
        'Der Anbieter bestätigt keine E-Mail-Adresse für Sie. Bitte registrieren Sie sich zuerst, und verbinden Sie dann den Anbieter.',
      providerSignUpOff:
        'Mit diesem Anbieter kann man sich nicht registrieren. Bitte registrieren Sie sich zuerst, und verbinden Sie ihn dann.',
      providerNotFound: 'Diesen Anbieter gibt es nicht.',
      identityTaken: 'Dieses Konto des Anbieters ist schon mit einem Konto verbunden.',
      tooManyIdentities: 'Sie haben schon 20 Verbindungen. Trennen Sie zuerst eine.',
    },
    notices: { identityLinked: 'Der Anbieter ist verbunden.', identityRemoved: 'Der Anbieter ist getrennt.' },
  },
})

interface Provider {
  readonly id: string
  readonly name: string
}

/** What a flow waits for. */
interface Pending {
  readonly provider: Provider
  readonly email: string | null
  readonly isEmailConfirmed: boolean
}

/** Leads to a provider. Not by a redirect: browsers check those of a form, and each provider has its own next ones. */
export const continuePage = ({ textsOf }: PageContext, name: string, url: string): Page => {
  const own = textsOf(TEXTS)
  return {
    title: fill(own.continueTo, { name }),
    refreshTo: url,
    body: card(
      fill(own.continueTo, { name }),
      html`<p>${own.continueText}</p>`,
      html`<p><a href="${url}">${fill(own.continueTo, { name })}</a></p>`,
    ),
  }
}

/** The page for an address that has an account: the user signs in to it first. */
export const signInToLinkPage = (
  { root, textsOf, texts }: PageContext,
  { provider, email }: Pending,
  back: Pick<PageContext, 'returnTo'>,
): Page => {
  const own = textsOf(TEXTS)
  return {
    title: own.taken,
    body: card(
      own.taken,
      html`<p>${fill(own.takenText, { email: email ?? '', name: provider.name })}</p>`,
      html`<p><a href="${root}${withReturn('sign-in', back)}">${texts.signIn}</a></p>`,
    ),
  }
}

export const confirmLinkPage = (
  context: PageContext,
  { provider, email, isEmailConfirmed }: Pending,
): Page => {
  const { root, textsOf } = context
  const own = textsOf(TEXTS)
  const text = isEmailConfirmed ? own.linkText : own.linkUnconfirmedText
  return {
    title: fill(own.linkTitle, { name: provider.name }),
    isSignedIn: true,
    body: html`${card(
      fill(own.linkTitle, { name: provider.name }),
      html`<p>${fill(text, { email: email ?? '', name: provider.name })}</p>`,
      html`<form method="post" action="${root}account/sign-in/providers/${provider.id}/link">
<button class="primary block">${fill(own.link, { name: provider.name })}</button>
</form>`,
    )}
${links([[`${root}security`, own.notNow]])}`,
  }
}

export const confirmCodePage = (
  context: PageContext,
  { provider }: Pending,
  errors: FieldErrors = NO_ERRORS,
): Page => {
  const { root, textsOf, texts } = context
  const own = textsOf(TEXTS)
  const form = new Form(context, errors)
  const field = form.field(oneTimeCodeField(context))
  return formPage(context, form, {
    title: texts.signIn,
    texts: [html`<p>${fill(own.codeText, { name: provider.name })}</p>`],
    action: `account/sign-in/providers/${provider.id}/confirm`,
    fields: [field],
    button: texts.signIn,
    next: links([[root + withReturn('sign-in', context), texts.backToSignIn]]),
  })
}

type Identity = Static<typeof IdentitySchema>

const identityRow = (context: PageContext, providers: readonly Provider[], identity: Identity): Html => {
  const { texts } = context
  const own = context.textsOf(TEXTS)
  const name = providers.find(({ id }) => id === identity.provider)?.name ?? identity.provider
  return row({
    title: name,
    value: identity.email === null ? own.linked : html`<span class="break">${identity.email}</span>`,
    note: html`${texts.sessionSince} ${time(context, identity.linkedAt)} · ${
      identity.lastUsedAt === null
        ? texts.unused
        : html`${texts.lastUsed} ${ago(context, identity.lastUsedAt)}`
    }`,
    action: button(context, {
      action: 'security/identities/remove',
      text: own.remove,
      label: fill(own.removeOf, { name }),
      id: identity.id,
    }),
  })
}

/** Linked accounts, then what can be linked. */
const identityRows = (
  context: PageContext,
  providers: readonly Provider[],
  identities: readonly Identity[],
): readonly Html[] => {
  const own = context.textsOf(TEXTS)
  return [
    ...identities.map(each => identityRow(context, providers, each)),
    ...providers.map(({ id, name }) =>
      row({
        title: name,
        value: html`<span class="muted">${identities.some(({ provider }) => provider === id) ? own.another : own.notLinked}</span>`,
        action: button(context, {
          action: 'security/identities/link',
          text: own.linkShort,
          label: fill(own.link, { name }),
          id,
        }),
      }),
    ),
  ]
}

/** @param text of a button. Both pages lead to the same flow. */
const providerButtons = (
  context: PageContext,
  providers: readonly Provider[],
  text: 'signIn' | 'signUp',
): Html =>
  html`${providers.map(
    ({
      id,
      name,
    }) => html`<form method="post" action="${context.root}${withReturn(`sign-in/providers/${id}`, context)}"><button class="block">${fill(context.textsOf(TEXTS)[text], { name })}</button></form>
`,
  )}`

interface ConfiguredProvider extends Provider {
  /** Whether it may open accounts. */
  readonly signUp: boolean
}

/** @param settings of the feature. */
export default ({
  OIDC_PROVIDERS: providers,
}: {
  readonly OIDC_PROVIDERS: readonly ConfiguredProvider[]
}) => {
  const forSignUp = providers.filter(({ signUp }) => signUp)
  return {
    texts: TEXTS,
    security: {
      path: '/account/identities',
      section: 'signIn',
      rows: (context: PageContext, { results }: { readonly results: readonly Identity[] }) =>
        identityRows(context, providers, results),
    },
    signIn: {
      identity: {
        button: (context: PageContext) => providerButtons(context, providers, 'signIn'),
        ...(forSignUp.length > 0 && {
          signUpButton: (context: PageContext) => providerButtons(context, forSignUp, 'signUp'),
        }),
      },
    },
  } satisfies FeaturePages
}
