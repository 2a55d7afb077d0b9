/** Admin keys in the console. */
import {
  agoField,
  type ConsoleDeclarations,
  type ConsoleParts,
  calls,
  type EventSentence,
  html,
  type Text,
  textField,
} from '#http/pages/feature-pages'

/** Days for which a new key works. */
const LIFETIMES = ['30', '90', '365'] as const

/** @param days `undefined`: it does not expire. What is no choice goes to the API as it is, which rejects it. */
const expiryAfter = (days: string | undefined): string | null => {
  if (days === undefined) return null
  if (!LIFETIMES.some(lifetime => lifetime === days)) return days
  return new Date(Date.now() + Number(days) * 86_400_000).toISOString()
}

const EVENTS: Readonly<Record<string, EventSentence>> = {
  'admin-key.created': {
    own: { en: '{actor} created an admin key', de: '{actor} hat einen Admin-Schlüssel erzeugt' },
    icon: 'key',
  },
  'admin-key.revoked': {
    own: { en: '{actor} revoked an admin key', de: '{actor} hat einen Admin-Schlüssel widerrufen' },
    icon: 'key',
    isBad: true,
  },
}

const ERROR_TEXTS: Readonly<Record<string, Text>> = {
  expiresAfterCreator: {
    en: 'Your own key expires before this.',
    de: 'Ihr eigener Schlüssel läuft vorher ab.',
  },
  adminKeyNotFound: { en: 'There is no such admin key.', de: 'Diesen Admin-Schlüssel gibt es nicht.' },
  tooManyAdminKeys: {
    en: 'There are 1,000 admin keys. Revoke one first.',
    de: 'Es gibt schon 1.000 Admin-Schlüssel. Widerrufen Sie erst einen.',
  },
}

export default ({ adminScopes }: ConsoleDeclarations): ConsoleParts => ({
  events: EVENTS,
  errors: ERROR_TEXTS,
  pages: [
    {
      path: 'admin-keys',
      title: { en: 'Admin keys', de: 'Admin-Schlüssel' },
      icon: 'key',
      list: {
        scope: 'keys:write',
        api: '/admin/keys',
        empty: {
          en: 'There is no admin key besides ADMIN_KEY.',
          de: 'Es gibt keinen Admin-Schlüssel außer ADMIN_KEY.',
        },
        columns: [
          textField({ en: 'Name', de: 'Name' }, 'name'),
          {
            label: { en: 'Key', de: 'Schlüssel' },
            value: ({ prefix }) => html`<code>${prefix}…</code>`,
            room: 'wide',
          },
          { ...agoField({ en: 'Created', de: 'Erzeugt' }, 'createdAt'), room: 'wide' },
          { ...agoField({ en: 'Last used', de: 'Zuletzt benutzt' }, 'lastUsedAt'), room: 'low' },
          { ...agoField({ en: 'Expires', de: 'Läuft ab' }, 'expiresAt'), room: 'mid' },
        ],
        also: ({ scopes }) => scopes.join(', '),
        actions: [
          {
            name: 'create',
            icon: 'plus',
            label: { en: 'Create a key', de: 'Schlüssel erzeugen' },
            scope: 'keys:write',
            // Otherwise a stolen session could create a key, and with it do what needs the key again.
            needsKey: true,
            inputs: [
              {
                name: 'name',
                label: { en: 'Name', de: 'Name' },
                hint: { en: 'To recognise the key later.', de: 'Damit Sie den Schlüssel später erkennen.' },
              },
              {
                name: 'scopes',
                label: { en: 'What the key may do', de: 'Was der Schlüssel darf' },
                kind: 'choices',
                options: Object.entries(adminScopes),
              },
              {
                name: 'days',
                label: { en: 'Expires', de: 'Läuft ab' },
                kind: 'choice',
                options: [
                  ['', { en: 'never', de: 'nie' }],
                  ...LIFETIMES.map(
                    days => [days, { en: `in ${days} days`, de: `in ${days} Tagen` }] as const,
                  ),
                ],
              },
            ],
            call: calls('POST /admin/keys', ({ name = '', scopes, days }) => ({
              name,
              scopes,
              expiresAt: expiryAfter(days),
            })),
            shown: ({ adminKey }) => [[{ en: 'Admin key', de: 'Admin-Schlüssel' }, adminKey]],
            done: { en: 'The new admin key', de: 'Der neue Admin-Schlüssel' },
          },
        ],
        rowActions: [
          {
            name: 'revoke',
            label: { en: 'Revoke', de: 'Widerrufen' },
            explanation: {
              en: 'Requests with it are refused from now on, and the sessions that it has opened end.',
              de: 'Anfragen mit ihm werden ab jetzt abgelehnt, und die Sitzungen enden, die er geöffnet hat.',
            },
            scope: 'keys:write',
            isDangerous: true,
            call: calls('DELETE /admin/keys/:rowId'),
            done: { en: 'The admin key is revoked.', de: 'Der Admin-Schlüssel ist widerrufen.' },
          },
        ],
      },
    },
  ],
})
