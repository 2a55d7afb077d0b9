/** API keys on the hosted pages: a section of the security page, and the page of a new key. */
import type { FieldErrors } from '#base/errors'
import { defineTexts, fill } from '#base/texts'
import type { serializeApiKey } from '#core/auth/api-key'
import type { FeaturePages } from '#http/pages/feature-pages'
import {
  ago,
  backToSecurity,
  button,
  cardWith,
  emblem,
  Form,
  formPage,
  type Html,
  html,
  NO_ERRORS,
  type Page,
  type PageContext,
  secretValue,
  time,
} from '#http/pages/layout'
import { badge, itemRow, linkRow } from '#http/pages/rows'

const TEXTS = defineTexts('api-keys', {
  en: {
    badge: 'API key',
    name: 'Name',
    nameHint: 'To recognise the key later.',
    scopes: 'What the key may do',
    lifetime: 'Expires',
    lifetimes: {
      never: 'Never',
      30: 'In 30 days',
      90: 'In 90 days',
      365: 'In a year',
    },
    create: 'Create a key',
    newKey: 'New API key',
    created: 'Your new API key',
    createdText: 'Copy the key “{name}” now: it is not shown again.',
    copied: 'I have copied it',
    expires: 'expires',
    revoke: 'Revoke',
    revokeOf: 'Revoke the key {name}',
    errors: {
      apiKeyNotFound: 'This API key is revoked already.',
      tooManyApiKeys: 'You have 50 API keys. Revoke one first.',
    },
    notices: { apiKeyRevoked: 'The API key is revoked.' },
  },
  de: {
    badge: 'API-Schlüssel',
    name: 'Name',
    nameHint: 'Damit Sie den Schlüssel später erkennen.',
    scopes: 'Was der Schlüssel darf',
    lifetime: 'Läuft ab',
    lifetimes: {
      never: 'Nie',
      30: 'In 30 Tagen',
      90: 'In 90 Tagen',
      365: 'In einem Jahr',
    },
    create: 'Schlüssel erzeugen',
    newKey: 'Neuer API-Schlüssel',
    created: 'Ihr neuer API-Schlüssel',
    createdText: 'Kopieren Sie den Schlüssel „{name}“ jetzt: er wird nicht noch einmal gezeigt.',
    copied: 'Ich habe ihn kopiert',
    expires: 'läuft ab',
    revoke: 'Widerrufen',
    revokeOf: 'Schlüssel {name} widerrufen',
    errors: {
      apiKeyNotFound: 'Dieser API-Schlüssel ist schon widerrufen.',
      tooManyApiKeys: 'Sie haben 50 API-Schlüssel. Widerrufen Sie zuerst einen.',
    },
    notices: { apiKeyRevoked: 'Der API-Schlüssel ist widerrufen.' },
  },
})

type ApiKey = ReturnType<typeof serializeApiKey>

const apiKeyRow = (context: PageContext, key: ApiKey): Html => {
  const { texts } = context
  const own = context.textsOf(TEXTS)
  return itemRow({
    icon: 'key',
    title: html`${key.name}${badge(own.badge)}`,
    note: html`<code>${key.prefix}…</code> · ${key.scopes.join(', ')} · ${
      key.lastUsedAt === null ? texts.unused : html`${texts.lastUsed} ${ago(context, key.lastUsedAt)}`
    }${key.expiresAt !== null && html` · ${own.expires} ${time(context, key.expiresAt)}`}`,
    action: button(context, {
      action: 'security/api-keys/revoke',
      text: own.revoke,
      label: fill(own.revokeOf, { name: key.name }),
      id: key.id,
    }),
  })
}

const apiKeyRows = (
  context: PageContext,
  { results: apiKeys }: { readonly results: readonly ApiKey[] },
): readonly Html[] => [
  ...apiKeys.map(key => apiKeyRow(context, key)),
  linkRow(context, 'security/api-keys', context.textsOf(TEXTS).newKey, 'plus'),
]

export interface NewApiKeyState {
  /** Every scope with what it allows, in English. */
  readonly scopes: Readonly<Record<string, string>>
  readonly name?: string
  readonly chosen?: readonly string[]
  readonly errors?: FieldErrors
}

export const newApiKeyPage = (
  context: PageContext,
  { scopes, name, chosen = [], errors = NO_ERRORS }: NewApiKeyState,
): Page => {
  const own = context.textsOf(TEXTS)
  const form = new Form(context, errors)
  const nameField = form.field({
    name: 'name',
    label: own.name,
    value: name,
    hint: own.nameHint,
    autocomplete: 'off',
  })
  const checks = Object.entries(scopes).map(([scope, description]) =>
    form.check({
      name: `scope:${scope}`,
      isChecked: chosen.includes(scope),
      label: html`<span><code>${scope}</code> <span lang="en">${description}</span></span>`,
    }),
  )
  const scopesField = form.group('scopes', own.scopes, checks)
  const lifetimeField = html`<div class="field">
<label for="lifetime">${own.lifetime}</label>
<select id="lifetime" name="lifetime">${Object.entries(own.lifetimes).map(
    ([days, text]) => html`<option value="${days}"${days === 'never' && html` selected`}>${text}</option>`,
  )}</select>
</div>`
  return formPage(context, form, {
    title: own.newKey,
    isSignedIn: true,
    action: 'security/api-keys',
    fields: [nameField, scopesField, lifetimeField],
    button: own.create,
    next: backToSecurity(context),
  })
}

export const apiKeyCreatedPage = (context: PageContext, name: string, token: string): Page => {
  const own = context.textsOf(TEXTS)
  return {
    title: own.created,
    isSignedIn: true,
    body: cardWith(
      { emblem: emblem('key') },
      own.created,
      html`<p>${fill(own.createdText, { name })}</p>`,
      secretValue(context, token),
      html`<a class="button primary block" href="${context.root}security">${own.copied}</a>`,
    ),
  }
}

export default {
  texts: TEXTS,
  security: { path: '/account/api-keys', section: 'applications', rows: apiKeyRows },
} satisfies FeaturePages
