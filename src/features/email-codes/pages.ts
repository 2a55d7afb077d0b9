/** Mailed codes and links on the hosted pages: links of the sign-in page, and the pages behind them. */

import type { FieldErrors } from '#base/errors'
import { defineTexts, fill } from '#base/texts'
import type { FeaturePages } from '#http/pages/feature-pages'
import {
  deviceOf,
  Form,
  formPage,
  hiddenField,
  html,
  links,
  messagePage,
  NO_ERRORS,
  type Page,
  type PageContext,
  time,
} from '#http/pages/layout'
import { withReturn } from '#http/pages/return-links'
import { type EmailState, emailPage } from '#http/pages/signed-out'

const TEXTS = defineTexts('email-codes', {
  en: {
    signIn: 'Sign in with a code by e-mail',
    text: 'We send a code to the e-mail of your account.',
    send: 'Send the code',
    sent: 'If there is an account with this e-mail, a code is on its way. It works for ten minutes.',
    code: 'Code from the mail',
    codeHint: 'Eight digits.',
    again: 'Send another code',
    mailCode: 'E-mail me a code',
    mailLink: 'E-mail me a link',
    linkSignIn: 'Sign in with a link by e-mail',
    linkText: 'We send a link to the e-mail of your account. It works in any browser.',
    linkSend: 'Send the link',
    linkSent: 'Check your mail',
    linkSentText: 'If there is an account with this e-mail, a link is on its way. It works for ten minutes.',
    linkAccount: 'You are signing in to the account {email}.',
    linkAsked: 'The link was asked for on',
    linkNotMe: 'If it was not you, close this page: then nothing happens.',
    linkUnconfirmed:
      'The address of this account has not been confirmed yet. This confirms it, and removes everything that gives access to the account now: password, sessions, API keys, passkeys and authenticator app.',
    linkAgain: 'Send another link',
    errors: { wrongEmailCode: 'The code is wrong, has expired or was used already.' },
  },
  de: {
    signIn: 'Mit Code per E-Mail anmelden',
    text: 'Wir senden einen Code an die E-Mail-Adresse Ihres Kontos.',
    send: 'Code senden',
    sent: 'Wenn es ein Konto mit dieser E-Mail-Adresse gibt, ist ein Code unterwegs. Er gilt zehn Minuten.',
    code: 'Code aus der Mail',
    codeHint: 'Acht Ziffern.',
    again: 'Neuen Code senden',
    mailCode: 'Code zusenden',
    mailLink: 'Link zusenden',
    linkSignIn: 'Mit Link per E-Mail anmelden',
    linkText: 'Wir senden einen Link an die E-Mail-Adresse Ihres Kontos. Er gilt in jedem Browser.',
    linkSend: 'Link senden',
    linkSent: 'Sehen Sie in Ihre Mails',
    linkSentText:
      'Wenn es ein Konto mit dieser E-Mail-Adresse gibt, ist ein Link unterwegs. Er gilt zehn Minuten.',
    linkAccount: 'Sie melden sich beim Konto {email} an.',
    linkAsked: 'Der Link wurde angefordert am',
    linkNotMe: 'Wenn Sie es nicht waren, schließen Sie diese Seite: Dann geschieht nichts.',
    linkUnconfirmed:
      'Die Adresse dieses Kontos ist noch nicht bestätigt. Damit wird sie bestätigt, und alles entfernt, was jetzt Zugang zum Konto gibt: Passwort, Sitzungen, API-Schlüssel, Passkeys und Authenticator-App.',
    linkAgain: 'Neuen Link senden',
    errors: { wrongEmailCode: 'Der Code ist falsch, abgelaufen oder schon benutzt.' },
  },
})

export const requestEmailCodePage = (context: PageContext, state: EmailState = {}): Page => {
  const { signIn: title, text, send: button } = context.textsOf(TEXTS)
  return emailPage(context, state, { path: 'sign-in/email-code', title, text, button })
}

export interface EmailCodeState {
  readonly email: string
  readonly errors?: FieldErrors
}

export const emailCodePage = (context: PageContext, { email, errors = NO_ERRORS }: EmailCodeState): Page => {
  const { texts, root } = context
  const own = context.textsOf(TEXTS)
  const form = new Form(context, errors)
  const field = form.field({
    name: 'emailCode',
    label: own.code,
    hint: own.codeHint,
    autocomplete: 'one-time-code',
    isCode: true,
    isNumeric: true,
  })
  return formPage(context, form, {
    title: own.signIn,
    texts: [html`<p>${own.sent}</p>`],
    action: withReturn('sign-in/email-code/confirm', context),
    fields: [hiddenField('email', email), field],
    button: texts.signIn,
    next: links([[root + withReturn('sign-in/email-code', context), own.again]]),
  })
}

export const requestMagicLinkPage = (context: PageContext, state: EmailState = {}): Page => {
  const { linkSignIn: title, linkText: text, linkSend: button } = context.textsOf(TEXTS)
  return emailPage(context, state, { path: 'sign-in/magic-link', title, text, button })
}

export const magicLinkSentPage = (context: PageContext): Page => {
  const { linkSent: title, linkSentText: text } = context.textsOf(TEXTS)
  return messagePage(context, {
    title,
    text,
    next: [withReturn('sign-in', context), context.texts.backToSignIn],
  })
}

export interface MagicLinkState {
  readonly token: string
  readonly link: {
    readonly email: string
    readonly emailVerified: boolean
    readonly requestedAt: string
    readonly network: string | null
    readonly userAgent: string | null
  }
  readonly errors?: FieldErrors
}

/** The page behind the link of a mail. It names the account, so that nobody signs in to that of somebody else unawares. */
export const magicLinkPage = (
  context: PageContext,
  { token, link, errors = NO_ERRORS }: MagicLinkState,
): Page => {
  const { texts, root } = context
  const own = context.textsOf(TEXTS)
  const { email, emailVerified, requestedAt, network, userAgent } = link
  const form = new Form(context, errors)
  return formPage(context, form, {
    title: texts.signIn,
    texts: [
      html`<p><strong>${fill(own.linkAccount, { email })}</strong></p>`,
      html`<p class="muted">${own.linkAsked} ${time(context, requestedAt)} · ${deviceOf(context, userAgent)}${network !== null && html` · ${network}`}</p>`,
      !emailVerified && html`<p>${own.linkUnconfirmed}</p>`,
      html`<p>${own.linkNotMe}</p>`,
    ],
    action: 'magic-link',
    fields: [hiddenField('token', token)],
    button: texts.signIn,
    next: links([[root + withReturn('sign-in/magic-link', context), own.linkAgain]]),
  })
}

export default {
  texts: TEXTS,
  signIn: {
    emailCode: {
      instead: context => [
        context.root + withReturn('sign-in/email-code', context),
        context.textsOf(TEXTS).mailCode,
      ],
    },
    magicLink: {
      instead: context => [
        context.root + withReturn('sign-in/magic-link', context),
        context.textsOf(TEXTS).mailLink,
      ],
    },
  },
} satisfies FeaturePages
