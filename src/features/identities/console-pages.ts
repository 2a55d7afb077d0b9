/** Accounts at other providers on the page of a user in the console. */
import { agoField, type ConsoleParts, calls, codeField, html, textField } from '#http/pages/feature-pages'

export const settings: Readonly<Record<string, string>> = {
  OIDC_PROVIDERS: 'Anbieter, mit deren Konten Nutzer sich anmelden',
  OIDC_ALLOWED_HOSTS: 'Hosts von Anbietern, die private Adressen und HTTP haben dürfen',
}

export default {
  events: {
    'identity.linked': {
      own: {
        en: '{actor} linked an account at a provider',
        de: '{actor} hat ein Konto bei einem Anbieter verknüpft',
      },
      of: {
        en: 'An account at a provider was linked to {user}',
        de: 'Ein Konto bei einem Anbieter wurde mit {user} verknüpft',
      },
      icon: 'application',
    },
    'identity.removed': {
      own: {
        en: '{actor} unlinked an account at a provider',
        de: '{actor} hat ein Konto bei einem Anbieter getrennt',
      },
      of: {
        en: '{actor} unlinked an account at a provider of {user}',
        de: '{actor} hat ein Konto bei einem Anbieter von {user} getrennt',
      },
      icon: 'application',
      isBad: true,
    },
  },
  pages: [
    {
      path: 'providers',
      title: { en: 'Sign-in providers', de: 'Anbieter' },
      icon: 'application',
      group: 'connections',
      lead: {
        en: 'Users sign in with their accounts there. OIDC_PROVIDERS has them.',
        de: 'Mit Konten dort melden sich Nutzer an. Sie stehen in OIDC_PROVIDERS.',
      },
      list: {
        scope: 'settings:read',
        api: '/admin/providers',
        empty: { en: 'No provider is configured.', de: 'Kein Anbieter ist eingerichtet.' },
        columns: [
          textField({ en: 'Name', de: 'Name' }, 'name'),
          codeField({ en: 'Id', de: 'Id' }, 'id'),
          { ...textField({ en: 'Issuer', de: 'Issuer' }, 'issuer'), room: 'low' },
          { ...textField({ en: 'Opens accounts', de: 'Eröffnet Konten' }, 'signUp'), room: 'wide' },
        ],
        also: ({ redirectUri }) => html`<bdi>${redirectUri}</bdi>`,
      },
    },
  ],
  userSections: [
    {
      name: 'identities',
      title: { en: 'Accounts at other providers', de: 'Konten bei anderen Anbietern' },
      scope: 'users:read',
      api: '/admin/users/:id/identities',
      empty: { en: 'None is linked.', de: 'Keines ist verknüpft.' },
      columns: [
        textField({ en: 'Provider', de: 'Anbieter' }, 'provider'),
        { ...codeField({ en: 'Subject', de: 'Subject' }, 'subject'), room: 'wide' },
        { ...agoField({ en: 'Linked', de: 'Verknüpft' }, 'linkedAt'), room: 'mid' },
        { ...agoField({ en: 'Last used', de: 'Zuletzt benutzt' }, 'lastUsedAt'), room: 'low' },
      ],
      also: ({ email }) => email,
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
