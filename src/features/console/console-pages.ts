/** The pages of what the core has: users, the audit log, the status. */
import { FILTERS } from '#core/users/fields'
import {
  type ConsoleDeclarations,
  type ConsoleField,
  type ConsolePage,
  type ConsoleParts,
  calls,
  codeField,
  html,
  type Item,
  listField,
  type Text,
  textField,
  timeField,
} from '#http/pages/feature-pages'
import { deviceOf } from '#http/pages/layout'

const jsonOf = (label: Text, name: string): ConsoleField => ({
  label,
  value: item =>
    item[name] === null || Object.keys(item[name]).length === 0
      ? null
      : html`<pre><bdi>${JSON.stringify(item[name], null, 2)}</bdi></pre>`,
})

const nameOf = ({ firstName, lastName }: Item): string => [firstName, lastName].filter(Boolean).join(' ')

/** The name of a field in words, which no language translates: `costCenter` is `Cost center`. */
const labelOf = (field: string): Text => {
  const words = field.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
  const label = words.charAt(0).toUpperCase() + words.slice(1)
  return { en: label, de: label }
}

const NAME: Text = { en: 'Name', de: 'Name' }
const EMAIL: Text = { en: 'E-mail', de: 'E-Mail' }
const ROLES: Text = { en: 'Roles', de: 'Rollen' }
const DISABLED: Text = { en: 'Disabled', de: 'Gesperrt' }
const SIGNED_UP: Text = { en: 'Signed up', de: 'Registriert' }
const LAST_REQUEST: Text = { en: 'Last request', de: 'Letzte Anfrage' }
const AFTER: Text = { en: 'From (UTC)', de: 'Ab (UTC)' }
const BEFORE: Text = { en: 'Before (UTC)', de: 'Vor (UTC)' }

/** Roles as people enter them. */
const rolesIn = (text: string | undefined): readonly string[] =>
  (text ?? '').split(/[\s,]+/).filter(role => role !== '')

export const EVENT_COLUMNS: readonly ConsoleField[] = [
  timeField({ en: 'Time', de: 'Zeit' }, 'at'),
  codeField({ en: 'Event', de: 'Ereignis' }, 'type'),
  {
    label: { en: 'By', de: 'Von' },
    value: ({ actor }) => html`${actor.type}${actor.id !== null && html` <code>${actor.id}</code>`}`,
  },
  textField({ en: 'Address', de: 'Adresse' }, 'ip'),
  {
    label: { en: 'Details', de: 'Einzelheiten' },
    value: ({ details }) => (details === null ? null : html`<code>${JSON.stringify(details)}</code>`),
  },
]

const users: ConsolePage = {
  path: 'users',
  title: { en: 'Users', de: 'Nutzer' },
  list: {
    scope: 'users:read',
    api: '/admin/users?limit=50&count=approximate',
    empty: { en: 'No user is found.', de: 'Kein Nutzer gefunden.' },
    link: ({ id }) => `users/${id}`,
    columns: [
      textField(EMAIL, 'email'),
      { label: NAME, value: nameOf },
      listField(ROLES, 'roles'),
      textField(DISABLED, 'disabled'),
      timeField(SIGNED_UP, 'createdAt'),
      timeField(LAST_REQUEST, 'lastRequestAt'),
    ],
    summary: ({ approximateTotal }, { language, say }) =>
      `${say({ en: 'Users, about:', de: 'Nutzer, etwa:' })} ${approximateTotal.toLocaleString(language)}`,
    filters: [
      {
        name: 'search',
        label: { en: 'Search', de: 'Suche' },
        hint: { en: 'The start of a name or an e-mail.', de: 'Der Anfang eines Namens oder einer E-Mail.' },
      },
      { name: 'role', label: { en: 'Role', de: 'Rolle' } },
      ...FILTERS.map(({ field }) => ({ name: field, label: labelOf(field) })),
      {
        name: 'disabled',
        label: DISABLED,
        kind: 'choice',
        options: [
          ['false', { en: 'no', de: 'nein' }],
          ['true', { en: 'yes', de: 'ja' }],
        ],
      },
      {
        name: 'createdAfter',
        label: { en: `Signed up from (UTC)`, de: 'Registriert ab (UTC)' },
        kind: 'day',
      },
      {
        name: 'createdBefore',
        label: { en: 'Signed up before (UTC)', de: 'Registriert vor (UTC)' },
        kind: 'day',
      },
      {
        name: 'sort',
        label: { en: 'Order', de: 'Reihenfolge' },
        kind: 'choice',
        options: [
          ['', { en: 'newest first', de: 'neueste zuerst' }],
          ['createdAt', { en: 'oldest first', de: 'älteste zuerst' }],
          ['firstName', { en: 'first name', de: 'Vorname' }],
          ['lastName', { en: 'last name', de: 'Nachname' }],
        ],
      },
    ],
  },
  item: {
    scope: 'users:read',
    api: '/admin/users/:id',
    title: ({ email }) => email,
    fields: [
      codeField({ en: 'Id', de: 'Id' }, 'id'),
      textField(EMAIL, 'email'),
      textField({ en: 'E-mail confirmed', de: 'E-Mail bestätigt' }, 'emailVerified'),
      { label: NAME, value: nameOf },
      textField({ en: 'Language', de: 'Sprache' }, 'locale'),
      listField(ROLES, 'roles'),
      textField(DISABLED, 'disabled'),
      listField({ en: 'Ways to sign in and factors', de: 'Anmeldewege und Faktoren' }, 'methods'),
      timeField(SIGNED_UP, 'createdAt'),
      timeField({ en: 'Changed', de: 'Geändert' }, 'updatedAt'),
      timeField(LAST_REQUEST, 'lastRequestAt'),
      jsonOf({ en: 'User metadata', de: 'Metadaten des Nutzers' }, 'userMetadata'),
      jsonOf({ en: 'App metadata', de: 'Metadaten der Anwendung' }, 'appMetadata'),
    ],
    actions: [
      {
        name: 'change',
        label: { en: 'Change the name', de: 'Namen ändern' },
        scope: 'users:write',
        inputs: [
          {
            name: 'firstName',
            label: { en: 'First name', de: 'Vorname' },
            isOptional: true,
            value: ({ firstName }) => firstName ?? '',
          },
          {
            name: 'lastName',
            label: { en: 'Last name', de: 'Nachname' },
            isOptional: true,
            value: ({ lastName }) => lastName ?? '',
          },
        ],
        call: calls('PUT /admin/users/:id', ({ firstName = null, lastName = null }) => ({
          firstName,
          lastName,
        })),
        done: { en: 'The name is changed.', de: 'Der Name ist geändert.' },
      },
      {
        name: 'roles',
        label: { en: 'Change roles', de: 'Rollen ändern' },
        scope: 'users:identity',
        needsKey: true,
        inputs: [
          {
            name: 'roles',
            label: ROLES,
            hint: { en: 'With spaces between them.', de: 'Mit Leerzeichen dazwischen.' },
            isOptional: true,
            value: ({ roles }) => roles.join(' '),
          },
        ],
        call: calls('PUT /admin/users/:id', ({ roles }) => ({ roles: rolesIn(roles) })),
        done: { en: 'The roles are changed.', de: 'Die Rollen sind geändert.' },
      },
      {
        name: 'disable',
        label: { en: 'Disable', de: 'Sperren' },
        explanation: {
          en: 'All sessions end, and nobody can sign in to the account until it is enabled again.',
          de: 'Alle Sitzungen enden, und niemand kann sich anmelden, bis das Konto wieder freigegeben ist.',
        },
        scope: 'users:write',
        isDangerous: true,
        isOffered: ({ disabled }) => !disabled,
        call: calls('PUT /admin/users/:id', () => ({ disabled: true })),
        done: { en: 'The user is disabled.', de: 'Der Nutzer ist gesperrt.' },
      },
      {
        name: 'enable',
        label: { en: 'Enable', de: 'Freigeben' },
        scope: 'users:write',
        isOffered: ({ disabled }) => disabled,
        call: calls('PUT /admin/users/:id', () => ({ disabled: false })),
        done: { en: 'The user is enabled.', de: 'Der Nutzer ist freigegeben.' },
      },
      {
        name: 'end-sessions',
        label: { en: 'End all sessions', de: 'Alle Sitzungen beenden' },
        scope: 'users:write',
        isDangerous: true,
        call: calls('DELETE /admin/users/:id/sessions'),
        done: { en: 'All sessions have ended.', de: 'Alle Sitzungen sind beendet.' },
      },
      {
        name: 'remove-factors',
        label: { en: 'Remove factors', de: 'Faktoren entfernen' },
        explanation: {
          en: 'Removes the authenticator app, recovery codes and passkeys. The user gets a mail.',
          de: 'Entfernt die Authenticator-App, Wiederherstellungscodes und Passkeys. Der Nutzer bekommt eine Mail.',
        },
        scope: 'users:identity',
        isDangerous: true,
        needsKey: true,
        isOffered: ({ factors }) => factors.length > 0,
        call: calls('DELETE /admin/users/:id/factors'),
        done: { en: 'The factors are removed.', de: 'Die Faktoren sind entfernt.' },
      },
      {
        name: 'impersonate',
        label: { en: 'Impersonate', de: 'Als Nutzer handeln' },
        explanation: {
          en: 'Opens a session of the user for an hour, in your name. The page that follows shows its token.',
          de: 'Öffnet für eine Stunde eine Sitzung des Nutzers, in Ihrem Namen. Die nächste Seite zeigt ihr Token.',
        },
        scope: 'users:impersonate',
        needsKey: true,
        isOffered: ({ disabled }) => !disabled,
        call: calls('POST /admin/users/:id/impersonate'),
        shown: ({ accessToken }) => [[{ en: 'Access token', de: 'Zugriffstoken' }, accessToken]],
        done: { en: 'You act as the user', de: 'Sie handeln als der Nutzer' },
      },
      {
        name: 'delete',
        label: { en: 'Delete', de: 'Löschen' },
        explanation: {
          en: 'Deletes the account and all its data. It cannot be undone.',
          de: 'Löscht das Konto und alle seine Daten. Das lässt sich nicht rückgängig machen.',
        },
        scope: 'users:delete',
        isDangerous: true,
        needsKey: true,
        call: calls('DELETE /admin/users/:id'),
        done: { en: 'The user is deleted.', de: 'Der Nutzer ist gelöscht.' },
        next: 'users',
      },
    ],
    sections: [
      {
        name: 'sessions',
        title: { en: 'Sessions', de: 'Sitzungen' },
        scope: 'users:read',
        api: '/admin/users/:id/sessions',
        empty: { en: 'The user has no session.', de: 'Der Nutzer hat keine Sitzung.' },
        columns: [
          {
            label: { en: 'Client', de: 'Programm' },
            value: (session, context) => deviceOf(context, session.userAgent),
          },
          textField({ en: 'Address', de: 'Adresse' }, 'ip'),
          textField({ en: 'Method', de: 'Anmeldeweg' }, 'method'),
          listField({ en: 'Authentication', de: 'Nachweise' }, 'amr'),
          textField({ en: 'Impersonated', de: 'Durch die Verwaltung' }, 'impersonated'),
          timeField({ en: 'Opened', de: 'Geöffnet' }, 'createdAt'),
          timeField(LAST_REQUEST, 'lastRequestAt'),
        ],
        rowActions: [
          {
            name: 'end',
            label: { en: 'End', de: 'Beenden' },
            scope: 'users:write',
            isDangerous: true,
            call: calls('DELETE /admin/users/:id/sessions/:rowId'),
            done: { en: 'The session has ended.', de: 'Die Sitzung ist beendet.' },
          },
        ],
      },
      {
        name: 'events',
        title: { en: 'Events', de: 'Ereignisse' },
        scope: 'events:read',
        api: '/admin/events?limit=10&userId=:id',
        columns: EVENT_COLUMNS,
        empty: { en: 'There is no event.', de: 'Es gibt kein Ereignis.' },
        more: id => `events?userId=${id}`,
      },
    ],
  },
}

const eventsPage = (types: readonly string[]): ConsolePage => ({
  path: 'events',
  title: { en: 'Audit log', de: 'Protokoll' },
  list: {
    scope: 'events:read',
    api: '/admin/events?limit=50',
    empty: { en: 'No event is found.', de: 'Kein Ereignis gefunden.' },
    isLive: true,
    columns: [
      ...EVENT_COLUMNS.slice(0, 2),
      {
        label: { en: 'User', de: 'Nutzer' },
        value: ({ userId }, { root }) =>
          userId === null ? null : html`<a href="${root}console/users/${userId}"><code>${userId}</code></a>`,
      },
      ...EVENT_COLUMNS.slice(2),
    ],
    filters: [
      {
        name: 'type',
        label: { en: 'Event', de: 'Ereignis' },
        kind: 'choice',
        options: types.toSorted().map(type => [type, type]),
      },
      { name: 'userId', label: { en: 'Id of the user', de: 'Id des Nutzers' } },
      { name: 'after', label: AFTER, kind: 'day' },
      { name: 'before', label: BEFORE, kind: 'day' },
    ],
  },
})

/** The page of the status, which follows those of features in the menu. */
export const statusPage: ConsolePage = {
  path: 'status',
  title: { en: 'Status', de: 'Status' },
  item: {
    scope: 'status:read',
    api: '/admin/status?count=approximate',
    title: ({ version }) => `Gatehouse ${version}`,
    fields: [
      textField({ en: 'Database', de: 'Datenbank' }, 'engine'),
      textField({ en: 'Workers', de: 'Worker' }, 'workers'),
      textField({ en: 'Environment', de: 'Umgebung' }, 'environment'),
      timeField({ en: 'Started', de: 'Gestartet' }, 'startedAt'),
      {
        label: { en: 'Users, about', de: 'Nutzer, etwa' },
        value: ({ approximateUsers = null }, { language }) =>
          approximateUsers?.toLocaleString(language) ?? null,
      },
      {
        label: { en: 'Cached tokens', de: 'Tokens im Cache' },
        value: ({ cache }, { language }) =>
          `${cache.entries.toLocaleString(language)} / ${cache.capacity.toLocaleString(language)}`,
      },
      textField({ en: 'Mail', de: 'Mail' }, 'mail'),
      textField({ en: 'Rate limits', de: 'Rate Limits' }, 'rateLimits'),
      textField({ en: 'Request log', de: 'Anfrageprotokoll' }, 'requestLog'),
      {
        label: { en: 'Password hashes', de: 'Passwort-Hashes' },
        value: ({ passwordHash: { algorithm, memoryKiB, iterations, parallelism } }) =>
          `${algorithm}, ${memoryKiB} KiB, t=${iterations}, p=${parallelism}`,
      },
      {
        label: { en: 'Replica', de: 'Replica' },
        value: ({ replica }) => replica && html`<pre>${JSON.stringify(replica, null, 2)}</pre>`,
      },
    ],
  },
}

export default ({ eventTypes }: ConsoleDeclarations): ConsoleParts => ({
  pages: [users, eventsPage(eventTypes)],
})
