/** Authenticator apps on the hosted pages: a section of the security page, and the pages behind it. */
import type { Static } from '@sinclair/typebox'
import type { FieldErrors } from '#base/errors'
import { defineTexts, fill } from '#base/texts'
import type { FeaturePages } from '#http/pages/feature-pages'
import { icon } from '#http/pages/icons'
import {
  backToSecurity,
  button,
  cardWith,
  emblem,
  Form,
  formPage,
  type Html,
  html,
  messagePage,
  NO_ERRORS,
  type Page,
  type PageContext,
  saveButtons,
  secretValue,
  time,
} from '#http/pages/layout'
import { badge, row } from '#http/pages/rows'
import { oneTimeCodeField } from '#http/pages/signed-out'
import type { NewTotp, Totp } from './routes/schemas.ts'

const TEXTS = defineTexts('totp', {
  en: {
    title: 'Authenticator app',
    isOff: 'Off',
    onNow: 'On',
    turnOn: 'Turn on',
    add: 'Add an authenticator app',
    on: 'Since',
    recoveryCodes: 'Recovery codes',
    codesLeft: '{count} left',
    newCodes: 'New codes',
    remove: 'Remove',
    removeOf: 'Remove the app',
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
    codes: 'Save your recovery codes',
    codesText:
      'Each signs you in once, if you lose your phone. Keep them in your password manager or on paper.',
    onlyNow: 'You see these codes only now.',
    codesSaved: 'I have saved the codes',
    continue: 'Continue',
    fileName: 'recovery-codes',
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
    isOff: 'Aus',
    onNow: 'Ein',
    turnOn: 'Einschalten',
    add: 'Authenticator-App hinzufügen',
    on: 'Seit',
    recoveryCodes: 'Wiederherstellungscodes',
    codesLeft: 'Noch {count}',
    newCodes: 'Neue Codes',
    remove: 'Entfernen',
    removeOf: 'App entfernen',
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
    codes: 'Speichern Sie Ihre Wiederherstellungscodes',
    codesText:
      'Jeder meldet Sie einmal an, wenn Sie Ihr Telefon verlieren. Heben Sie die Codes im Passwortmanager oder auf Papier auf.',
    onlyNow: 'Sie sehen diese Codes nur jetzt.',
    codesSaved: 'Ich habe die Codes gespeichert',
    continue: 'Weiter',
    fileName: 'wiederherstellungscodes',
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

const totpRows = (
  context: PageContext,
  { confirmedAt, recoveryCodes }: Static<typeof Totp>,
): readonly Html[] => {
  const own = context.textsOf(TEXTS)
  if (confirmedAt === null)
    return [
      row({
        title: own.title,
        value: html`<span class="muted">${own.isOff}</span>`,
        action: button(context, { action: 'security/totp', text: own.turnOn }),
      }),
    ]
  return [
    row({
      title: own.title,
      value: badge(own.onNow, 'good'),
      note: html`${own.on} ${time(context, confirmedAt)}`,
      action: button(context, { action: 'security/totp/remove', text: own.remove, label: own.removeOf }),
    }),
    row({
      title: own.recoveryCodes,
      value: badge(fill(own.codesLeft, { count: recoveryCodes }), recoveryCodes < FEW_CODES ? 'warn' : ''),
      action: button(context, {
        action: 'security/recovery-codes',
        text: own.newCodes,
      }),
    }),
  ]
}

/** Fewer recovery codes than this are shown as a warning. */
const FEW_CODES = 3

/** A secret of the API for an authenticator app; `null` if it was shown before. */
export type ShownTotp = Static<typeof NewTotp> | null

const shownSecret = (context: PageContext, { secret, uri, qr }: NonNullable<ShownTotp>): Html => {
  const own = context.textsOf(TEXTS)
  return html`<p>${own.scan}</p>
<img class="qr" alt="${own.qr}" src="data:image/svg+xml,${encodeURIComponent(qr)}">
<p>${own.secret}</p>
${secretValue(context, secret.replace(/.{4}(?=.)/g, '$& '))}
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
        button(context, { action: 'security/totp', text: own.beginAgain, className: 'quiet' }),
    ],
    next: backToSecurity(context),
  })
}

/** The page of a first code that was sent twice: the recovery codes were in the response to the first. */
export const totpIsOnPage = (context: PageContext): Page => {
  const { isOn: title, isOnText: text } = context.textsOf(TEXTS)
  return messagePage(context, { title, text, next: ['security', context.texts.backToSecurity] })
}

export const recoveryCodesPage = (context: PageContext, codes: readonly string[]): Page => {
  const { textsOf, root, product } = context
  const own = textsOf(TEXTS)
  const file = `${own.recoveryCodes}, ${product}\n\n${codes.join('\n')}\n`
  return {
    title: own.codes,
    isSignedIn: true,
    body: cardWith(
      { emblem: emblem('shield', 'good') },
      own.codes,
      html`<p>${own.codesText}</p>`,
      html`<ol class="codes" aria-label="${own.recoveryCodes}">${codes.map(code => html`<li>${code}</li>`)}</ol>`,
      saveButtons(context, { copies: '.codes', fileName: `${own.fileName}.txt`, file }),
      html`<p class="notice warn">${icon('warning')}<span>${own.onlyNow}</span></p>`,
      html`<form class="stack" method="get" action="${root}security">
<label class="check"><input type="checkbox" required><span>${own.codesSaved}</span></label>
<button class="primary block">${own.continue}</button>
</form>`,
    ),
  }
}

export default {
  texts: TEXTS,
  security: { path: '/account/totp', section: 'secondStep', rows: totpRows },
} satisfies FeaturePages
