/** Accounts at other providers on the page of a user in the console. */
import { type ConsoleParts, calls, codeField, textField, timeField } from '#http/pages/feature-pages'

export default {
  userSections: [
    {
      name: 'identities',
      title: { en: 'Accounts at other providers', de: 'Konten bei anderen Anbietern' },
      scope: 'users:read',
      api: '/admin/users/:id/identities',
      empty: { en: 'None is linked.', de: 'Keines ist verknüpft.' },
      columns: [
        textField({ en: 'Provider', de: 'Anbieter' }, 'provider'),
        codeField({ en: 'Subject', de: 'Subject' }, 'subject'),
        textField({ en: 'E-mail there', de: 'E-Mail dort' }, 'email'),
        timeField({ en: 'Linked', de: 'Verknüpft' }, 'linkedAt'),
        timeField({ en: 'Last used', de: 'Zuletzt benutzt' }, 'lastUsedAt'),
      ],
      rowActions: [
        {
          name: 'unlink',
          label: { en: 'Unlink', de: 'Trennen' },
          scope: 'users:identity',
          isDangerous: true,
          call: calls('DELETE /admin/users/:id/identities/:rowId'),
          done: { en: 'The account is unlinked.', de: 'Das Konto ist getrennt.' },
        },
      ],
    },
  ],
} satisfies ConsoleParts
