/** API keys on the page of a user in the console. */
import { type ConsoleParts, html, time } from '../pages/feature-pages.ts'

export default {
  userSections: [
    {
      name: 'api-keys',
      title: { en: 'API keys', de: 'API-Schlüssel' },
      scope: 'users:read',
      api: '/admin/users/:id/api-keys',
      empty: { en: 'The user has no API key.', de: 'Der Nutzer hat keinen API-Schlüssel.' },
      columns: [
        { label: { en: 'Name', de: 'Name' }, value: ({ name }) => name },
        { label: { en: 'Key', de: 'Schlüssel' }, value: ({ prefix }) => html`<code>${prefix}…</code>` },
        { label: { en: 'Scopes', de: 'Scopes' }, value: ({ scopes }) => scopes.join(', ') },
        {
          label: { en: 'Last used', de: 'Zuletzt benutzt' },
          value: ({ lastUsedAt }, context) => lastUsedAt && time(context, lastUsedAt),
        },
        {
          label: { en: 'Expires', de: 'Läuft ab' },
          value: ({ expiresAt }, context) => expiresAt && time(context, expiresAt),
        },
      ],
      rowActions: [
        {
          name: 'revoke',
          label: { en: 'Revoke', de: 'Widerrufen' },
          scope: 'users:write',
          isDangerous: true,
          call: ({ id, rowId }) => ({ method: 'DELETE', path: `/admin/users/${id}/api-keys/${rowId}` }),
          done: { en: 'The API key is revoked.', de: 'Der API-Schlüssel ist widerrufen.' },
        },
      ],
    },
  ],
} satisfies ConsoleParts
