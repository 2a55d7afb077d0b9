/** Accounts at other providers on the page of a user in the console. */
import { type ConsoleParts, html, time } from '../pages/feature-pages.ts'

export default {
  userSections: [
    {
      name: 'identities',
      title: { en: 'Accounts at other providers', de: 'Konten bei anderen Anbietern' },
      scope: 'users:read',
      api: '/admin/users/:id/identities',
      empty: { en: 'None is linked.', de: 'Keines ist verknüpft.' },
      columns: [
        { label: { en: 'Provider', de: 'Anbieter' }, value: ({ provider }) => provider },
        { label: { en: 'Subject', de: 'Subject' }, value: ({ subject }) => html`<code>${subject}</code>` },
        { label: { en: 'E-mail there', de: 'E-Mail dort' }, value: ({ email }) => email },
        {
          label: { en: 'Linked', de: 'Verknüpft' },
          value: ({ linkedAt }, context) => time(context, linkedAt),
        },
        {
          label: { en: 'Last used', de: 'Zuletzt benutzt' },
          value: ({ lastUsedAt }, context) => lastUsedAt && time(context, lastUsedAt),
        },
      ],
      rowActions: [
        {
          name: 'unlink',
          label: { en: 'Unlink', de: 'Trennen' },
          scope: 'users:identity',
          isDangerous: true,
          call: ({ id, rowId }) => ({ method: 'DELETE', path: `/admin/users/${id}/identities/${rowId}` }),
          done: { en: 'The account is unlinked.', de: 'Das Konto ist getrennt.' },
        },
      ],
    },
  ],
} satisfies ConsoleParts
