/** The pages of what the core has: users, the audit log, the status. */
import { FILTERS } from '#core/users/fields'
import {
  ago,
  agoField,
  badge,
  type ConsoleAction,
  type ConsoleContext,
  type ConsoleField,
  type ConsolePage,
  type ConsoleParts,
  type ConsoleSection,
  type ConsoleTable,
  calls,
  codeField,
  type FilterLookup,
  type Html,
  type HtmlValue,
  html,
  type Item,
  listField,
  type Text,
  textField,
  timeField,
  wordField,
} from '#http/pages/feature-pages'
import { deviceOf } from '#http/pages/layout'
import { EVENT_NAMES } from './event-log.ts'
import { EVENT_SENTENCES } from './event-sentences.ts'
import { EXPORT, IMPORT, USERS } from './transfer-pages.ts'

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
const FIRST_NAME: Text = { en: 'First name', de: 'Vorname' }
const LAST_NAME: Text = { en: 'Last name', de: 'Nachname' }
const STATE: Text = { en: 'State', de: 'Zustand' }
const DISABLED: Text = { en: 'Disabled', de: 'Gesperrt' }
const SIGNED_UP: Text = { en: 'Signed up', de: 'Registriert' }
const LAST_REQUEST: Text = { en: 'Last request', de: 'Letzte Anfrage' }
const AFTER: Text = { en: 'From (UTC)', de: 'Ab (UTC)' }
const BEFORE: Text = { en: 'Before (UTC)', de: 'Vor (UTC)' }

const JSON_HINT: Text = { en: 'An object in JSON.', de: 'Ein Objekt in JSON.' }

const METHODS = wordField({ en: 'Signs in with', de: 'Meldet sich an mit' }, 'methods')

/** Roles as people enter them. */
const rolesIn = (text: string | undefined): readonly string[] =>
  (text ?? '').split(/[\s,]+/).filter(role => role !== '')

const stateOf = ({ disabled, emailVerified }: Item, { say }: ConsoleContext): Html => {
  if (disabled) return badge(say({ en: 'Disabled', de: 'Gesperrt' }), 'bad')
  return emailVerified
    ? badge(say({ en: 'Active', de: 'Aktiv' }), 'good')
    : badge(say({ en: 'Not confirmed', de: 'Nicht bestätigt' }), 'warn')
}

const DISABLE: ConsoleAction = {
  name: 'disable',
  icon: 'block',
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
}

const ENABLE: ConsoleAction = {
  name: 'enable',
  icon: 'check',
  label: { en: 'Enable', de: 'Freigeben' },
  scope: 'users:write',
  isOffered: ({ disabled }) => disabled,
  call: calls('PUT /admin/users/:id', () => ({ disabled: false })),
  done: { en: 'The user is enabled.', de: 'Der Nutzer ist freigegeben.' },
}

const END_SESSIONS: ConsoleAction = {
  name: 'end-sessions',
  icon: 'signOut',
  label: { en: 'End all sessions', de: 'Alle Sitzungen beenden' },
  scope: 'users:write',
  isDangerous: true,
  call: calls('DELETE /admin/users/:id/sessions'),
  done: { en: 'All sessions have ended.', de: 'Alle Sitzungen sind beendet.' },
}

const DELETE: ConsoleAction = {
  name: 'delete',
  icon: 'remove',
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
}

const users: ConsolePage = {
  path: 'users',
  title: USERS,
  icon: 'users',
  group: 'people',
  list: {
    scope: 'users:read',
    api: '/admin/users?limit=50&count=approximate',
    empty: { en: 'No user is found.', de: 'Kein Nutzer gefunden.' },
    link: ({ id }) => `users/${id}`,
    columns: [
      textField(EMAIL, 'email'),
      { label: STATE, value: stateOf, room: 'low' },
      { ...listField(ROLES, 'roles'), room: 'mid' },
      { ...METHODS, room: 'wide' },
      { ...agoField(LAST_REQUEST, 'lastRequestAt'), room: 'low' },
      { ...agoField(SIGNED_UP, 'createdAt'), room: 'mid', sort: 'createdAt' },
    ],
    sortedBy: '-createdAt',
    also: (user, context) => [
      html`<span class="seen">${stateOf(user, context)} </span>`,
      html`<bdi>${nameOf(user)}</bdi>`,
      user.lastRequestAt !== null && html`<span class="seen"> · ${ago(context, user.lastRequestAt)}</span>`,
    ],
    summary: ({ approximateTotal }, { language, say }) =>
      `${say({ en: 'about', de: 'etwa' })} ${approximateTotal.toLocaleString(language)}`,
    actions: [
      {
        name: 'create',
        icon: 'plus',
        label: { en: 'Add a user', de: 'Nutzer hinzufügen' },
        explanation: {
          en: 'The user has no password. Send a link for one from the page of the user.',
          de: 'Der Nutzer hat kein Passwort. Senden Sie einen Link dafür von der Seite des Nutzers.',
        },
        scope: 'users:write',
        inputs: [
          { name: 'email', label: EMAIL, kind: 'email' },
          { name: 'firstName', label: FIRST_NAME, isOptional: true },
          { name: 'lastName', label: LAST_NAME, isOptional: true },
        ],
        call: calls('POST /admin/users', ({ email = '', firstName = null, lastName = null }) => ({
          email,
          firstName,
          lastName,
        })),
        done: { en: 'The user is added.', de: 'Der Nutzer ist hinzugefügt.' },
      },
    ],
    links: [
      { name: 'import', icon: 'upload', label: IMPORT, scope: 'users:import' },
      { name: 'export', icon: 'download', label: EXPORT, scope: 'users:export' },
    ],
    bulk: [DISABLE, ENABLE, END_SESSIONS, DELETE],
    filters: [
      {
        name: 'search',
        label: { en: 'Search', de: 'Suche' },
        hint: { en: 'Start of a name or an e-mail', de: 'Anfang eines Namens oder einer E-Mail' },
        isSearch: true,
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
    subtitle: nameOf,
    badges: (user, context) => [
      stateOf(user, context),
      user.emailVerified
        ? badge(context.say({ en: 'E-mail confirmed', de: 'E-Mail bestätigt' }), 'good')
        : badge(context.say({ en: 'E-mail not confirmed', de: 'E-Mail nicht bestätigt' }), 'warn'),
      ...(user.factors.length > 0
        ? [badge(context.say({ en: 'Second factor', de: 'Zweiter Faktor' }), 'good')]
        : []),
    ],
    fields: [
      textField(EMAIL, 'email'),
      { label: NAME, value: nameOf },
      textField({ en: 'Language', de: 'Sprache' }, 'locale'),
      listField(ROLES, 'roles'),
      METHODS,
      jsonOf({ en: 'User metadata', de: 'Metadaten des Nutzers' }, 'userMetadata'),
      jsonOf({ en: 'App metadata', de: 'Metadaten der Anwendung' }, 'appMetadata'),
    ],
    about: [
      codeField({ en: 'Id', de: 'Id' }, 'id'),
      timeField(SIGNED_UP, 'createdAt'),
      timeField({ en: 'Changed', de: 'Geändert' }, 'updatedAt'),
      agoField(LAST_REQUEST, 'lastRequestAt'),
    ],
    actions: [
      {
        name: 'change',
        icon: 'edit',
        label: { en: 'Change the name', de: 'Namen ändern' },
        scope: 'users:write',
        inputs: [
          {
            name: 'firstName',
            label: FIRST_NAME,
            isOptional: true,
            value: ({ firstName }) => firstName ?? '',
          },
          {
            name: 'lastName',
            label: LAST_NAME,
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
        name: 'metadata',
        icon: 'edit',
        label: { en: 'Edit metadata', de: 'Metadaten bearbeiten' },
        scope: 'users:write',
        inputs: [
          {
            name: 'userMetadata',
            label: { en: 'Of the user', de: 'Des Nutzers' },
            hint: JSON_HINT,
            kind: 'json',
            value: ({ userMetadata }) => JSON.stringify(userMetadata ?? {}, null, 2),
          },
          {
            name: 'appMetadata',
            label: { en: 'Of the application', de: 'Der Anwendung' },
            hint: JSON_HINT,
            kind: 'json',
            value: ({ appMetadata }) => JSON.stringify(appMetadata ?? {}, null, 2),
          },
        ],
        call: calls('PUT /admin/users/:id', ({ userMetadata = {}, appMetadata = {} }) => ({
          userMetadata,
          appMetadata,
        })),
        done: { en: 'The metadata are changed.', de: 'Die Metadaten sind geändert.' },
      },
      {
        name: 'send-password-link',
        icon: 'mail',
        label: { en: 'Send a link for a new password', de: 'Link für ein neues Passwort senden' },
        scope: 'users:write',
        isOffered: ({ disabled }) => !disabled,
        call: calls('POST /admin/users/:id/password-reset'),
        done: { en: 'A link is on its way.', de: 'Ein Link ist unterwegs.' },
      },
      {
        name: 'send-confirmation',
        icon: 'mail',
        label: { en: 'Send a confirmation mail', de: 'Bestätigungsmail senden' },
        scope: 'users:write',
        isOffered: ({ disabled, emailVerified }) => !(disabled || emailVerified),
        call: calls('POST /admin/users/:id/email-verification'),
        done: { en: 'A link is on its way.', de: 'Ein Link ist unterwegs.' },
      },
      {
        name: 'email',
        icon: 'mail',
        label: { en: 'Change the e-mail', de: 'E-Mail ändern' },
        explanation: {
          en: 'The new address is not confirmed. Both addresses get a mail.',
          de: 'Die neue Adresse ist nicht bestätigt. Beide Adressen bekommen eine Mail.',
        },
        scope: 'users:identity',
        needsKey: true,
        inputs: [{ name: 'email', label: EMAIL, kind: 'email', value: ({ email }) => email }],
        call: calls('PUT /admin/users/:id', ({ email = '' }) => ({ email })),
        done: { en: 'The e-mail is changed.', de: 'Die E-Mail ist geändert.' },
      },
      {
        name: 'confirm-email',
        icon: 'check',
        label: { en: 'Confirm the e-mail', de: 'E-Mail bestätigen' },
        explanation: {
          en: 'Only if you know that the address is the one of the user.',
          de: 'Nur wenn Sie wissen, dass die Adresse dem Nutzer gehört.',
        },
        scope: 'users:identity',
        needsKey: true,
        isOffered: ({ emailVerified }) => !emailVerified,
        call: calls('PUT /admin/users/:id', () => ({ emailVerified: true })),
        done: { en: 'The e-mail is confirmed.', de: 'Die E-Mail ist bestätigt.' },
      },
      {
        name: 'roles',
        icon: 'tag',
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
        name: 'remove-factors',
        icon: 'shield',
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
        icon: 'mask',
        label: { en: 'Get an access token', de: 'Zugriffstoken holen' },
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
        name: 'act',
        icon: 'mask',
        label: { en: 'Act as this user', de: 'Als dieser Nutzer handeln' },
        explanation: {
          en: 'This browser gets a session of the user for an hour, in your name. It replaces a session of an account that you have here.',
          de: 'Dieser Browser bekommt für eine Stunde eine Sitzung des Nutzers, in Ihrem Namen. Sie ersetzt eine Sitzung eines Kontos, die Sie hier haben.',
        },
        scope: 'users:impersonate',
        needsKey: true,
        isOffered: ({ disabled }) => !disabled,
        call: calls('POST /admin/users/:id/impersonate'),
        signsIn: true,
        done: { en: 'You act as the user', de: 'Sie handeln als der Nutzer' },
      },
      ENABLE,
      END_SESSIONS,
      DISABLE,
      DELETE,
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
          { ...wordField({ en: 'Authentication', de: 'Nachweise' }, 'amr'), room: 'wide' },
          { ...textField({ en: 'Impersonated', de: 'Durch die Verwaltung' }, 'impersonated'), room: 'wide' },
          { ...textField({ en: 'Address', de: 'Adresse' }, 'ip'), room: 'low' },
          { ...agoField({ en: 'Opened', de: 'Geöffnet' }, 'createdAt'), room: 'wide' },
          { ...agoField(LAST_REQUEST, 'lastRequestAt'), room: 'low' },
        ],
        also: ({ method, ip, lastRequestAt }, context) => [
          context.word(method),
          html`<span class="seen"> · ${ip} · ${ago(context, lastRequestAt)}</span>`,
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
    ],
  },
}

type Rows = NonNullable<ConsoleTable['rows']>

const userByEmail: FilterLookup = {
  scope: 'users:read',
  api: text => (text.includes('@') ? `/admin/users?limit=1&${new URLSearchParams({ email: text })}` : null),
  idOf: ({ results: [user] }) => user?.id ?? null,
}

/** Ids of keys of the store and of root keys, and of users. */
const ID = /^(?:[\da-f]{8}|[\da-f-]{36})$/i

const keyByName: FilterLookup = {
  scope: 'keys:write',
  api: text => (ID.test(text) ? null : '/admin/keys'),
  idOf: ({ results }, text) =>
    results.find(({ name }: Item) => name.toLowerCase() === text.toLowerCase())?.id ?? null,
}

const EVENTS = {
  scope: 'events:read',
  columns: [],
  names: EVENT_NAMES,
  empty: { en: 'There is no event.', de: 'Es gibt kein Ereignis.' },
}

/** Events on the page of a user. */
export const userEvents = (rows: Rows): ConsoleSection => ({
  ...EVENTS,
  rows,
  name: 'events',
  title: { en: 'Events', de: 'Ereignisse' },
  api: '/admin/events?limit=20&userId=:id',
  more: id => `events?userId=${id}`,
})

/** Events on the overview. */
export const latestEvents = (rows: Rows): ConsoleSection => ({
  ...EVENTS,
  rows,
  name: 'events',
  title: { en: 'Latest events', de: 'Neueste Ereignisse' },
  api: '/admin/events?limit=10',
})

/** @param types of events, with their names. */
export const eventsPage = (types: readonly (readonly [string, Text])[], rows: Rows): ConsolePage => ({
  path: 'events',
  title: { en: 'Audit log', de: 'Protokoll' },
  icon: 'log',
  list: {
    ...EVENTS,
    rows,
    api: '/admin/events?limit=50',
    isLive: true,
    filters: [
      {
        name: 'userId',
        label: { en: 'User', de: 'Nutzer' },
        hint: { en: 'E-mail or id of a user', de: 'E-Mail oder Id eines Nutzers' },
        isSearch: true,
        lookups: [userByEmail],
      },
      {
        name: 'type',
        label: { en: 'Event', de: 'Ereignis' },
        kind: 'choice',
        options: types,
      },
      {
        name: 'actorId',
        label: { en: 'By user or key', de: 'Von Nutzer, Schlüssel' },
        lookups: [userByEmail, keyByName],
      },
      { name: 'ip', label: { en: 'Address', de: 'Adresse' } },
      { name: 'after', label: AFTER, kind: 'day' },
      { name: 'before', label: BEFORE, kind: 'day' },
    ],
  },
})

/** The page of the status, which follows those of features in the menu. */
export const statusPage: ConsolePage = {
  path: 'status',
  title: { en: 'Status', de: 'Status' },
  icon: 'status',
  item: {
    scope: 'status:read',
    api: '/admin/status?count=approximate',
    title: ({ version }) => `Gatehouse ${version}`,
    fields: [
      textField({ en: 'Database', de: 'Datenbank' }, 'engine'),
      textField({ en: 'Workers', de: 'Worker' }, 'workers'),
      wordField({ en: 'Environment', de: 'Umgebung' }, 'environment'),
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
      wordField({ en: 'Mail', de: 'Mail' }, 'mail'),
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

const settingValue = ({ value, set }: Item, { say }: ConsoleContext): Html => {
  if (value !== null && value !== '') return html`<bdi>${value}</bdi>`
  return set
    ? badge(say({ en: 'Set, not shown', de: 'Gesetzt, nicht gezeigt' }))
    : html`<span class="muted">${say({ en: 'Not set', de: 'Nicht gesetzt' })}</span>`
}

/** The settings, those of the core first. @param german what they do, by their names. */
const settingRows =
  (german: Readonly<Record<string, string>>): Rows =>
  (context, settings) => {
    const { say, language } = context
    const described = ({ name, description }: Item): HtmlValue =>
      language === 'de' ? (german[name] ?? html`<span lang="en">${description}</span>`) : description
    const byDefault = ({ default: text, set }: Item): Html | false =>
      set && text && html`<br>${say({ en: 'Default', de: 'Vorgabe' })}: <bdi>${text}</bdi>`
    const line = (setting: Item): Html =>
      html`<div><dt><code>${setting.name}</code></dt><dd>${settingValue(setting, context)}<small>${described(setting)}${byDefault(setting)}</small></dd></div>
`
    return html`${Array.from(
      Map.groupBy(settings, ({ feature }): string => feature ?? say({ en: 'Service', de: 'Dienst' })),
      ([name, group]) => html`<h2>${name}</h2>
<dl class="settings">
${group.map(line)}</dl>
`,
    )}`
  }

/** @param kinds of mails, with their subjects. */
const testMail = (kinds: readonly (readonly [string, Text])[]): ConsoleAction => ({
  name: 'test-mail',
  icon: 'mail',
  label: { en: 'Send a test mail', de: 'Testmail senden' },
  explanation: {
    en: 'The mail has examples in place of names and links. If the mail server refuses it, this page says why.',
    de: 'Die Mail hat Beispiele statt Namen und Links. Lehnt der Mailserver sie ab, sagt diese Seite, warum.',
  },
  scope: 'mails:test',
  inputs: [
    { name: 'email', label: EMAIL, kind: 'email' },
    { name: 'kind', label: { en: 'Mail', de: 'Mail' }, kind: 'choice', options: kinds },
    {
      name: 'locale',
      label: { en: 'Language', de: 'Sprache' },
      hint: { en: 'A tag such as de; by default English.', de: 'Ein Kürzel wie de; sonst Englisch.' },
      isOptional: true,
    },
  ],
  call: calls('POST /admin/mails/test', input => input),
  done: { en: 'The mail server has taken the mail.', de: 'Der Mailserver hat die Mail angenommen.' },
})

/**
 * @param german what settings do, by their names.
 * @param mails the kinds of mails that can be tried, with their subjects.
 */
export const settingsPage = (
  german: Readonly<Record<string, string>>,
  mails: readonly (readonly [string, Text])[],
): ConsolePage => ({
  path: 'settings',
  title: { en: 'Settings', de: 'Einstellungen' },
  icon: 'settings',
  lead: {
    en: 'They are variables of the environment, and change with a restart. Secrets are never shown.',
    de: 'Sie sind Variablen der Umgebung und ändern sich mit einem Neustart. Geheimnisse werden nie gezeigt.',
  },
  list: {
    scope: 'settings:read',
    api: '/admin/settings',
    empty: { en: 'There is no setting.', de: 'Es gibt keine Einstellung.' },
    columns: [],
    rows: settingRows(german),
    actions: [testMail(mails)],
  },
})

export default { pages: [users], events: EVENT_SENTENCES } satisfies ConsoleParts
