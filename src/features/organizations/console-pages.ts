/** Organizations in the console, and on the page of a user there. */
import {
  type ConsoleAction,
  type ConsoleField,
  type ConsoleParts,
  calls,
  codeField,
  type EventSentence,
  listField,
  type Text,
  textField,
  timeField,
} from '#http/pages/feature-pages'

const READ = 'organizations:read'
const WRITE = 'organizations:write'

const NAME: Text = { en: 'Name', de: 'Name' }
const SLUG: Text = { en: 'Short name', de: 'Kurzname' }
const SEATS: Text = { en: 'Seats', de: 'Plätze' }
const ROLES_LABEL: Text = { en: 'Roles', de: 'Rollen' }

const MAX_MEMBERS: ConsoleField = {
  label: SEATS,
  value: ({ maxMembers }, { say }) => maxMembers ?? say({ en: 'any number', de: 'beliebig viele' }),
}

const CREATED = timeField({ en: 'Created', de: 'Erzeugt' }, 'createdAt')
const ROLES = listField(ROLES_LABEL, 'roles')
const JOINED = timeField({ en: 'Joined', de: 'Beigetreten' }, 'joinedAt')

/** What is not a number, the API rejects with a message. */
const seatsIn = (entered: string | undefined): number | string | null => {
  if (entered === undefined) return null
  return /^\d{1,9}$/.test(entered) ? Number(entered) : entered
}

const ACTIONS: readonly ConsoleAction[] = [
  {
    name: 'edit',
    icon: 'edit',
    label: { en: 'Edit', de: 'Bearbeiten' },
    scope: WRITE,
    inputs: [
      { name: 'name', label: NAME, value: ({ name }) => name },
      { name: 'slug', label: SLUG, value: ({ slug }) => slug },
      {
        name: 'maxMembers',
        label: SEATS,
        isOptional: true,
        hint: { en: 'Empty: any number.', de: 'Leer: beliebig viele.' },
        value: ({ maxMembers }) => String(maxMembers ?? ''),
      },
    ],
    call: calls('PUT /admin/organizations/:id', ({ name = '', slug = '', maxMembers }) => ({
      name,
      slug,
      maxMembers: seatsIn(maxMembers),
    })),
    done: { en: 'The organization is changed.', de: 'Die Organisation ist geändert.' },
  },
  {
    name: 'put-member',
    icon: 'plus',
    label: { en: 'Add a member or change roles', de: 'Mitglied hinzufügen oder Rollen ändern' },
    scope: WRITE,
    needsKey: true,
    inputs: [
      { name: 'userId', label: { en: 'Id of the user', de: 'Id des Nutzers' } },
      {
        name: 'roles',
        label: ROLES_LABEL,
        hint: {
          en: 'Separated by commas, such as: member',
          de: 'Durch Kommas getrennt, zum Beispiel: member',
        },
      },
    ],
    call: ({ id }, { userId = '', roles = '' }) => ({
      method: 'PUT',
      path: '/admin/organizations/:id/members/:userId',
      params: { id, userId },
      body: { roles: roles.split(/[\s,]+/).filter((role: string) => role !== '') },
    }),
    done: { en: 'The member is stored.', de: 'Das Mitglied ist gespeichert.' },
  },
  {
    name: 'delete',
    icon: 'remove',
    label: { en: 'Delete', de: 'Löschen' },
    explanation: {
      en: 'All memberships and invitations end.',
      de: 'Alle Mitgliedschaften und Einladungen enden.',
    },
    scope: WRITE,
    isDangerous: true,
    needsKey: true,
    call: calls('DELETE /admin/organizations/:id'),
    done: { en: 'The organization is deleted.', de: 'Die Organisation ist gelöscht.' },
    next: 'organizations',
  },
]

const said = (en: string, de: string, isBad = false): EventSentence => ({
  own: { en: `{actor} ${en}`, de: `{actor} hat ${de}` },
  icon: 'organization',
  ...(isBad && { isBad }),
})

/** What is said of somebody. */
const saidOf = (en: string, de: string, isBad = false): EventSentence => ({
  ...said(`${en} a member`, `${de.replace('…', 'ein Mitglied')}`, isBad),
  of: { en: `{actor} ${en} {user}`, de: `{actor} hat ${de.replace('…', '{user}')}` },
})

const EVENTS: Readonly<Record<string, EventSentence>> = {
  'organization.created': said('created an organization', 'eine Organisation erzeugt'),
  'organization.changed': said('changed an organization', 'eine Organisation geändert'),
  'organization.deleted': said('deleted an organization', 'eine Organisation gelöscht', true),
  'organization.member-added': saidOf('added to an organization', '… zu einer Organisation hinzugefügt'),
  'organization.member-changed': saidOf(
    'changed the roles in an organization of',
    'die Rollen von … in einer Organisation geändert',
  ),
  'organization.member-removed': saidOf(
    'removed from an organization',
    '… aus einer Organisation entfernt',
    true,
  ),
  'organization.invitation-created': said(
    'invited somebody to an organization',
    'jemanden in eine Organisation eingeladen',
  ),
  'organization.invitation-revoked': said('revoked an invitation', 'eine Einladung widerrufen'),
  'organization.invitation-accepted': said('accepted an invitation', 'eine Einladung angenommen'),
}

export const scopes: Readonly<Record<string, string>> = {
  [READ]: 'Organisationen und ihre Mitglieder lesen',
  [WRITE]: 'Organisationen und ihre Mitglieder ändern und löschen',
}

export const settings: Readonly<Record<string, string>> = {
  ORGANIZATION_ROLES: 'Rollen in Organisationen außer owner, admin und member',
  ORGANIZATION_MAX_MEMBERS:
    'Plätze neuer Organisationen, die die Verwaltung ändern kann; sonst beliebig viele',
  ORGANIZATION_MAX_CREATED: 'Organisationen, die ein Nutzer anlegen kann',
  ORGANIZATION_MAX_INVITATIONS: 'Einladungen einer Organisation, die gleichzeitig offen sein können',
  ORGANIZATION_DAILY_INVITATIONS:
    'Einladungen, die ein Nutzer und eine Organisation an einem Tag senden können',
}

export default {
  events: EVENTS,
  pages: [
    {
      path: 'organizations',
      title: { en: 'Organizations', de: 'Organisationen' },
      icon: 'organization',
      group: 'people',
      list: {
        scope: READ,
        api: '/admin/organizations?limit=50',
        empty: { en: 'No organization is found.', de: 'Keine Organisation gefunden.' },
        link: ({ id }) => `organizations/${id}`,
        columns: [
          textField(NAME, 'name'),
          { ...textField(SLUG, 'slug'), room: 'mid' },
          { ...MAX_MEMBERS, room: 'low' },
          { ...CREATED, room: 'wide' },
        ],
        filters: [
          { name: 'name', label: { en: 'Name begins with', de: 'Name beginnt mit' }, isSearch: true },
          { name: 'slug', label: { en: 'Short name begins with', de: 'Kurzname beginnt mit' } },
        ],
      },
      item: {
        scope: READ,
        api: '/admin/organizations/:id',
        title: ({ name }) => name,
        fields: [codeField({ en: 'Id', de: 'Id' }, 'id'), textField(SLUG, 'slug'), MAX_MEMBERS, CREATED],
        actions: ACTIONS,
        sections: [
          {
            name: 'members',
            title: { en: 'Members', de: 'Mitglieder' },
            scope: READ,
            api: '/admin/organizations/:id/members',
            empty: { en: 'It has no members.', de: 'Sie hat keine Mitglieder.' },
            link: ({ userId }) => `users/${userId}`,
            columns: [
              textField({ en: 'E-mail', de: 'E-Mail' }, 'email'),
              { ...ROLES, room: 'low' },
              { ...JOINED, room: 'mid' },
            ],
            also: ({ firstName, lastName }) => [firstName, lastName].filter(Boolean).join(' '),
          },
        ],
      },
    },
  ],
  userSections: [
    {
      name: 'organizations',
      title: { en: 'Organizations', de: 'Organisationen' },
      scope: READ,
      api: '/admin/users/:id/organizations',
      empty: { en: 'The user is in none.', de: 'Der Nutzer ist in keiner.' },
      link: ({ id }) => `organizations/${id}`,
      columns: [textField(NAME, 'name'), { ...ROLES, room: 'low' }, { ...JOINED, room: 'mid' }],
      rowActions: [
        {
          name: 'remove',
          label: { en: 'Remove from it', de: 'Daraus entfernen' },
          scope: WRITE,
          isDangerous: true,
          call: calls('DELETE /admin/organizations/:rowId/members/:id'),
          done: { en: 'The membership has ended.', de: 'Die Mitgliedschaft ist beendet.' },
        },
      ],
    },
  ],
} satisfies ConsoleParts
