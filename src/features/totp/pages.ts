/** Authenticator apps on the hosted pages: a section of the security page, and the pages behind it. */

import type { Static } from '@sinclair/typebox'
import type { FieldErrors } from '#base/errors'
import { defineTexts, fill } from '#base/texts'
import type { FeaturePages } from '#http/pages/feature-pages'
import {
  backToSecurity,
  button,
  card,
  Form,
  formPage,
  type Html,
  html,
  links,
  messagePage,
  NO_ERRORS,
  type Page,
  type PageContext,
  time,
} from '#http/pages/layout'
import { oneTimeCodeField } from '#http/pages/signed-out'
import type { NewTotp, Totp } from './routes/schemas.ts'

const TEXTS = defineTexts('totp', {
  en: {
    title: 'Authenticator app',
    off: 'With an authenticator app, signing in with your password needs a code from your phone too.',
    add: 'Add an authenticator app',
    on: 'On since',
    codeLeft: 'One recovery code is left.',
    codesLeft: '{count} recovery codes are left.',
    newCodes: 'Make new recovery codes',
    remove: 'Remove the app',
    scan: 'Scan this code with your authenticator app.',
    qr: 'QR code with the secret below',
    secret: 'Without a camera, enter this secret into the app:',
    open: 'Open the app on this device',
    confirm: 'Enter the code that the app shows now.',
    again: 'Enter the code that your app shows now, or begin again to see the QR code.',
    confirmButton: 'Turn on',
    beginAgain: 'Begin again',
    isOn: 'Your authenticator app is on',
    isOnText: 'If you have not seen your recovery codes, make new ones in your account security.',
    codes: 'Your recovery codes',
    codesText:
      'Each code signs you in once without your authenticator app. Save them now: they are not shown again.',
    codesSaved: 'I have saved them',
    errors: {
      encryptionKeyRequired: 'This service does not support authenticator apps.',
      totpNotFound: 'Your account has no authenticator app.',
      totpExists: 'Your account has an authenticator app already. Remove it first.',
      totpNotBegun: 'Adding the app took too long. Begin again.',
      codesUnavailable: 'Codes cannot be checked now. Use a recovery code.',
    },
    notices: { totpRemoved: 'The authenticator app is removed.' },
  },
  de: {
    title: 'Authenticator-App',
    off: 'Mit einer Authenticator-App braucht die Anmeldung mit Passwort auch einen Code von Ihrem Telefon.',
    add: 'Authenticator-App hinzufügen',
    on: 'Eingeschaltet seit',
    codeLeft: 'Ein Wiederherstellungscode ist übrig.',
    codesLeft: '{count} Wiederherstellungscodes sind übrig.',
    newCodes: 'Neue Wiederherstellungscodes erzeugen',
    remove: 'App entfernen',
    scan: 'Lesen Sie diesen Code mit Ihrer Authenticator-App.',
    qr: 'QR-Code mit dem Geheimnis, das darunter steht',
    secret: 'Ohne Kamera: geben Sie dieses Geheimnis in die App ein:',
    open: 'Die App auf diesem Gerät öffnen',
    confirm: 'Geben Sie den Code ein, den die App jetzt zeigt.',
    again:
      'Geben Sie den Code ein, den Ihre App jetzt zeigt, oder beginnen Sie neu, um den QR-Code zu sehen.',
    confirmButton: 'Einschalten',
    beginAgain: 'Neu beginnen',
    isOn: 'Ihre Authenticator-App ist eingeschaltet',
    isOnText:
      'Wenn Sie Ihre Wiederherstellungscodes nicht gesehen haben, erzeugen Sie neue in der Kontosicherheit.',
    codes: 'Ihre Wiederherstellungscodes',
    codesText:
      'Mit jedem Code melden Sie sich einmal ohne Authenticator-App an. Heben Sie die Codes jetzt auf: sie werden nicht noch einmal gezeigt.',
    codesSaved: 'Ich habe sie gespeichert',
    errors: {
      encryptionKeyRequired: 'Dieser Dienst unterstützt keine Authenticator-Apps.',
      totpNotFound: 'Ihr Konto hat keine Authenticator-App.',
      totpExists: 'Ihr Konto hat schon eine Authenticator-App. Entfernen Sie sie zuerst.',
      totpNotBegun: 'Das Hinzufügen der App hat zu lange gedauert. Beginnen Sie neu.',
      codesUnavailable: 'Codes können gerade nicht geprüft werden. Nehmen Sie einen Wiederherstellungscode.',
    },
    notices: { totpRemoved: 'Die Authenticator-App ist entfernt.' },
  },
})

const totpSection = (context: PageContext, { confirmedAt, recoveryCodes }: Static<typeof Totp>): Html => {
  const own = context.textsOf(TEXTS)
  return html`<section>
<h2>${own.title}</h2>
${
  confirmedAt === null
    ? html`<p>${own.off}</p>
${button(context, { action: 'security/totp', text: own.add })}`
    : html`<p>${own.on} ${time(context, confirmedAt)}. ${recoveryCodes === 1 ? own.codeLeft : fill(own.codesLeft, { count: recoveryCodes })}</p>
${button(context, { action: 'security/recovery-codes', text: own.newCodes, className: 'plain' })}
${button(context, { action: 'security/totp/remove', text: own.remove, className: 'danger' })}`
}
</section>`
}

/** A secret of the API for an authenticator app; `null` if it was shown before. */
export type ShownTotp = Static<typeof NewTotp> | null

const shownSecret = ({ textsOf }: PageContext, { secret, uri, qr }: NonNullable<ShownTotp>): Html => {
  const own = textsOf(TEXTS)
  return html`<p>${own.scan}</p>
<img class="qr" alt="${own.qr}" src="data:image/svg+xml,${encodeURIComponent(qr)}">
<p>${own.secret}</p>
<p><code class="secret">${secret.replace(/.{4}(?=.)/g, '$& ')}</code></p>
<p><a href="${uri}">${own.open}</a></p>`
}

export const newTotpPage = (
  context: PageContext,
  { shown, errors = NO_ERRORS }: { readonly shown: ShownTotp; readonly errors?: FieldErrors },
): Page => {
  const own = context.textsOf(TEXTS)
  const form = new Form(context, errors)
  const field = form.field({
    ...oneTimeCodeField(context),
    hint: shown === null ? own.again : own.confirm,
  })
  return formPage(context, form, {
    title: own.add,
    isSignedIn: true,
    texts: [shown !== null && shownSecret(context, shown)],
    action: 'security/totp/confirm',
    fields: [field],
    button: own.confirmButton,
    after: [
      shown === null &&
        button(context, { action: 'security/totp', text: own.beginAgain, className: 'plain' }),
    ],
    next: backToSecurity(context),
  })
}

/** The page of a first code that was sent twice: the recovery codes were in the response to the first. */
export const totpIsOnPage = (context: PageContext): Page => {
  const { isOn: title, isOnText: text } = context.textsOf(TEXTS)
  return messagePage(context, { title, text, next: ['security', context.texts.backToSecurity] })
}

export const recoveryCodesPage = ({ textsOf, root }: PageContext, codes: readonly string[]): Page => {
  const own = textsOf(TEXTS)
  return {
    title: own.codes,
    isSignedIn: true,
    body: html`${card(
      own.codes,
      html`<p>${own.codesText}</p>`,
      html`<ul class="codes">${codes.map(code => html`<li>${code}</li>`)}</ul>`,
    )}
${links([[`${root}security`, own.codesSaved]])}`,
  }
}

export default {
  texts: TEXTS,
  security: { path: '/account/totp', section: totpSection, isOfFactor: true },
} satisfies FeaturePages
