/** Passkeys on the hosted pages: a button of the sign-in page, and a section of the security page. */

import type { Static } from '@sinclair/typebox'
import { defineTexts, fill } from '#base/texts'
import type { FeaturePages } from '#http/pages/feature-pages'
import { button, Form, type Html, html, NO_ERRORS, type PageContext, time } from '#http/pages/layout'
import type { Passkey as PasskeySchema } from './routes/schemas.ts'

const TEXTS = defineTexts('passkeys', {
  en: {
    signIn: 'Sign in with a passkey',
    failed: 'The passkey did not work. Try again, or sign in in another way.',
    title: 'Passkeys',
    text: 'A passkey signs you in with your fingerprint, face or PIN, without a password.',
    unnamed: 'Passkey',
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
    title: 'Passkeys',
    text: 'Mit einem Passkey melden Sie sich mit Fingerabdruck, Gesicht oder PIN an, ohne Passwort.',
    unnamed: 'Passkey',
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

const passkeyItem = (context: PageContext, passkey: Passkey): Html => {
  const { texts } = context
  const own = context.textsOf(TEXTS)
  const name = passkey.name ?? own.unnamed
  return html`<li><div>
<p>${name}</p>
<p class="muted">${texts.sessionSince} ${time(context, passkey.createdAt)} · ${
    passkey.lastUsedAt === null ? texts.unused : html`${texts.lastUsed} ${time(context, passkey.lastUsedAt)}`
  }</p>
</div>${button(context, {
    action: 'security/passkeys/remove',
    text: own.remove,
    label: fill(own.removeOf, { name }),
    className: 'danger',
    id: passkey.id,
  })}</li>`
}

const passkeysSection = (
  context: PageContext,
  { results: passkeys }: { readonly results: readonly Passkey[] },
): Html => {
  const own = context.textsOf(TEXTS)
  const form = new Form(context, NO_ERRORS, 'passkey-')
  return html`<section>
<h2>${own.title}</h2>
<p>${own.text}</p>
${passkeys.length > 0 && html`<ul class="list">${passkeys.map(passkey => passkeyItem(context, passkey))}</ul>`}
<p class="muted" id="passkey-add-needs">${own.needs}</p>
<div id="passkey-add" data-notice="${context.noticeCookie}=passkeyAdded" hidden>
${form.field({ name: 'name', label: own.name, autocomplete: 'off', isOptional: true })}
<button type="button">${own.add}</button>
<p class="error" role="alert" hidden>${own.failed}</p>
</div>
</section>`
}

/** The button to sign in, hidden until the script of the page shows it. */
const signInButton = ({ texts, textsOf }: PageContext): Html => {
  const own = textsOf(TEXTS)
  return html`<div id="passkey-sign-in" hidden>
<p class="or">${texts.or}</p>
<button type="button" class="main plain">${own.signIn}</button>
<p class="error" role="alert" hidden>${own.failed}</p>
</div>`
}

export default {
  texts: TEXTS,
  security: { path: '/account/passkeys', section: passkeysSection, isOfFactor: true },
  script: new URL('page-script.js', import.meta.url),
  signIn: { passkey: { autofill: 'webauthn', button: signInButton } },
} satisfies FeaturePages
