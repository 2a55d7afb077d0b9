/** API keys on the page of a user in the console. */
import { type ConsoleParts, calls, html, listField, textField, timeField } from '#http/pages/feature-pages'

export default {
  userSections: [
    {
      name: 'api-keys',
      title: { en: 'API keys', de: 'API-Schlüssel' },
      scope: 'users:read',
      api: '/admin/users/:id/api-keys',
      empty: { en: 'The user has no API key.', de: 'Der Nutzer hat keinen API-Schlüssel.' },
      columns: [
        textField({ en: 'Name', de: 'Name' }, 'name'),
        { label: { en: 'Key', de: 'Schlüssel' }, value: ({ prefix }) => html`<code>${prefix}…</code>` },
        listField({ en: 'Scopes', de: 'Scopes' }, 'scopes'),
        timeField({ en: 'Last used', de: 'Zuletzt benutzt' }, 'lastUsedAt'),
        timeField({ en: 'Expires', de: 'Läuft ab' }, 'expiresAt'),
      ],
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
