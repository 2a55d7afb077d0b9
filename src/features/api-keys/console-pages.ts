/** API keys on the page of a user in the console. */
import { agoField, type ConsoleParts, calls, html, textField } from '#http/pages/feature-pages'

export default {
  events: {
    'api-key.created': {
      own: { en: '{actor} created an API key', de: '{actor} hat einen API-Schlüssel erzeugt' },
      icon: 'key',
    },
    'api-key.revoked': {
      own: { en: '{actor} revoked an API key', de: '{actor} hat einen API-Schlüssel widerrufen' },
      of: {
        en: '{actor} revoked an API key of {user}',
        de: '{actor} hat einen API-Schlüssel von {user} widerrufen',
      },
      icon: 'key',
      isBad: true,
    },
  },
  userSections: [
    {
      name: 'api-keys',
      title: { en: 'API keys', de: 'API-Schlüssel' },
      scope: 'users:read',
      api: '/admin/users/:id/api-keys',
      empty: { en: 'The user has no API key.', de: 'Der Nutzer hat keinen API-Schlüssel.' },
      columns: [
        textField({ en: 'Name', de: 'Name' }, 'name'),
        {
          label: { en: 'Key', de: 'Schlüssel' },
          value: ({ prefix }) => html`<code>${prefix}…</code>`,
          room: 'wide',
        },
        { ...agoField({ en: 'Last used', de: 'Zuletzt benutzt' }, 'lastUsedAt'), room: 'low' },
        { ...agoField({ en: 'Expires', de: 'Läuft ab' }, 'expiresAt'), room: 'mid' },
      ],
      also: ({ scopes }) => scopes.join(', '),
      rowActions: [
        {
          name: 'revoke',
          label: { en: 'Revoke', de: 'Widerrufen' },
          scope: 'users:write',
          isDangerous: true,
          call: calls('DELETE /admin/users/:id/api-keys/:rowId'),
          done: { en: 'The API key is revoked.', de: 'Der API-Schlüssel ist widerrufen.' },
        },
      ],
    },
  ],
} satisfies ConsoleParts
