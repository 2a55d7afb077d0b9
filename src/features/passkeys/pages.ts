/** Passkeys on the hosted pages: a button of the sign-in page, and a section of the security page. */
import type { Static } from '@sinclair/typebox'
import { defineTexts, fill } from '#base/texts'
import type { FeaturePages } from '#http/pages/feature-pages'
import { icon } from '#http/pages/icons'
import { ago, button, Form, type Html, html, NO_ERRORS, type PageContext, time } from '#http/pages/layout'
import { formRow, row } from '#http/pages/rows'
import type { Passkey as PasskeySchema } from './routes/schemas.ts'

const TEXTS = defineTexts('passkeys', {
  en: {
    signIn: 'Sign in with a passkey',
    failed: 'The passkey did not work. Try again, or sign in in another way.',
    another: 'Another passkey',
    text: 'Your fingerprint, face or PIN, without a password.',
    added: 'Added',
    unnamed: 'Passkey',
    open: 'Add',
    add: 'Add a passkey',
    name: 'Name of the passkey',
    needs: 'Adding a passkey needs JavaScript, and a browser that has passkeys.',
    remove: 'Remove',
    removeOf: 'Remove the passkey {name}',
    errors: { passkeyNotFound: 'This passkey is removed already.' },
    notices: { passkeyAdded: 'The passkey is added.', passkeyRemoved: 'The passkey is removed.' },
  },
  de: {
    signIn: 'Mit Passkey anmelden',
    failed:
      'Der Passkey hat nicht funktioniert. Versuchen Sie es noch einmal, oder melden Sie sich anders an.',
    another: 'Weiterer Passkey',
    text: 'Ihr Fingerabdruck, Gesicht oder PIN, ohne Passwort.',
    added: 'Hinzugefügt am',
    unnamed: 'Passkey',
    open: 'Hinzufügen',
    add: 'Passkey hinzufügen',
    name: 'Name des Passkeys',
    needs: 'Um einen Passkey hinzuzufügen, braucht es JavaScript und einen Browser mit Passkeys.',
    remove: 'Entfernen',
    removeOf: 'Passkey {name} entfernen',
    errors: { passkeyNotFound: 'Dieser Passkey ist schon entfernt.' },
    notices: { passkeyAdded: 'Der Passkey ist hinzugefügt.', passkeyRemoved: 'Der Passkey ist entfernt.' },
  },
})

type Passkey = Static<typeof PasskeySchema>

const passkeyRow = (context: PageContext, passkey: Passkey): Html => {
  const { texts } = context
  const own = context.textsOf(TEXTS)
  const name = passkey.name ?? own.unnamed
  return row({
    title: own.unnamed,
    value: name,
    note: html`${own.added} ${time(context, passkey.createdAt)} · ${
      passkey.lastUsedAt === null ? texts.unused : html`${texts.lastUsed} ${ago(context, passkey.lastUsedAt)}`
    }`,
    action: button(context, {
      action: 'security/passkeys/remove',
      text: own.remove,
      label: fill(own.removeOf, { name }),
      id: passkey.id,
    }),
  })
}

const passkeyRows = (
  context: PageContext,
  { results: passkeys }: { readonly results: readonly Passkey[] },
): readonly Html[] => {
  const own = context.textsOf(TEXTS)
  const form = new Form(context, NO_ERRORS, 'passkey-')
  return [
    ...passkeys.map(passkey => passkeyRow(context, passkey)),
    formRow(context, {
      title: passkeys.length > 0 ? own.another : own.unnamed,
      value: html`<span class="muted">${own.text}</span>`,
      open: own.open,
      form: html`<div class="form">
<p class="muted" id="passkey-add-needs">${own.needs}</p>
<div class="stack" id="passkey-add" data-notice="${context.noticeCookie}=passkeyAdded" hidden>
${form.field({ name: 'name', label: own.name, autocomplete: 'off', isOptional: true })}
<div class="buttons"><button type="button" class="primary">${own.add}</button></div>
<p class="error" role="alert" hidden>${own.failed}</p>
</div>
</div>`,
    }),
  ]
}

/** The button to sign in, hidden until the script of the page shows it. */
const signInButton = ({ textsOf }: PageContext): Html => {
  const own = textsOf(TEXTS)
  return html`<div class="stack span" id="passkey-sign-in" hidden>
<button type="button" class="block">${icon('passkey')}${own.signIn}</button>
<p class="error" role="alert" hidden>${own.failed}</p>
</div>`
}

export default {
  texts: TEXTS,
  security: { path: '/account/passkeys', section: 'signIn', rows: passkeyRows },
  script: new URL('page-script.js', import.meta.url),
  signIn: { passkey: { autofill: 'webauthn', button: signInButton } },
} satisfies FeaturePages
