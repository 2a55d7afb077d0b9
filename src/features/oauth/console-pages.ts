/** Clients and resources in the console, and what the audit log says of them and of grants. */
import {
  badge,
  type ConsoleAction,
  type ConsoleContext,
  type ConsoleDeclarations,
  type ConsoleField,
  type ConsoleInput,
  type ConsolePage,
  type ConsoleParts,
  calls,
  codeField,
  type EventSentence,
  type Html,
  html,
  type Item,
  listField,
  type Text,
  textField,
  timeField,
  wordField,
} from '#http/pages/feature-pages'
import { TEXTS } from './page-texts.ts'

const READ = 'clients:read'
const WRITE = 'clients:write'
const TRUST = 'clients:trust'

const NAME: Text = { en: 'Name', de: 'Name' }
const SECRET: Text = { en: 'Secret', de: 'Geheimnis' }
const CREATED = timeField({ en: 'Created', de: 'Erzeugt' }, 'createdAt')
const CHANGED = timeField({ en: 'Changed', de: 'Geändert' }, 'updatedAt')

/** The kinds of clients that administrators choose from, with the metadata that they stand for. */
const KINDS = {
  web: { authMethod: 'client_secret_basic', grantTypes: ['authorization_code', 'refresh_token'] },
  installed: { authMethod: 'none', grantTypes: ['authorization_code', 'refresh_token'] },
  service: { authMethod: 'client_secret_basic', grantTypes: ['client_credentials'] },
} as const

const KIND_TEXTS: Readonly<Record<keyof typeof KINDS, Text>> = {
  web: { en: 'Web application, which keeps a secret', de: 'Webanwendung, die ein Geheimnis bewahrt' },
  installed: {
    en: 'Single page, app or program on a device, without a secret',
    de: 'Einzelseite, App oder Programm auf einem Gerät, ohne Geheimnis',
  },
  service: { en: 'Service, which acts for itself', de: 'Dienst, der für sich selbst handelt' },
}

const KIND: ConsoleField = {
  label: { en: 'Kind', de: 'Art' },
  value: ({ authMethod, grantTypes }, { say }) => {
    if (!grantTypes.includes('authorization_code')) return say({ en: 'Service', de: 'Dienst' })
    return authMethod === 'none'
      ? say({ en: 'Page, app or program', de: 'Seite, App oder Programm' })
      : say({ en: 'Web application', de: 'Webanwendung' })
  },
  room: 'low',
}

/** Scopes of users in words. Those of resources have none here. */
const USER_SCOPES = Object.entries(TEXTS.en.scopes).map(
  ([scope, en]) =>
    [scope, { en, de: (TEXTS.de.scopes as Readonly<Record<string, string>>)[scope] ?? en }] as const,
)

const userScopes = new Map<string, Text>(USER_SCOPES)

/** A list with a line for each value. */
const lines = (values: readonly (string | Html)[]): Html | null =>
  values.length === 0 ? null : html`<ul class="plain">${values.map(value => html`<li>${value}</li>`)}</ul>`

const inWords = (scopes: readonly string[], texts: ReadonlyMap<string, Text>, { say }: ConsoleContext) =>
  lines(
    scopes.map(scope => {
      const text = texts.get(scope)
      return html`<code>${scope}</code>${text !== undefined && html` <span class="hint">${say(text)}</span>`}`
    }),
  )

const hostOf = (uri: string): string => {
  const { host, protocol } = new URL(uri)
  return host === '' ? protocol : host
}

const RETURNS: ConsoleField = {
  label: { en: 'Returns to', de: 'Kehrt zurück zu' },
  value: ({ redirectUris }) => [...new Set<string>(redirectUris.map(hostOf))].join(', '),
  room: 'mid',
}

const badgesOf = ({ firstParty, origin, blocked }: Item, { say }: ConsoleContext): readonly Html[] => [
  ...(blocked ? [badge(say({ en: 'Blocked', de: 'Gesperrt' }), 'bad')] : []),
  ...(firstParty ? [badge(say({ en: 'Ours', de: 'Eigene' }))] : []),
  ...(origin === 'administrator' ? [] : [badge(say({ en: 'Unverified', de: 'Nicht überprüft' }), 'warn')]),
]

const LINES: Text = { en: 'One address a line.', de: 'Eine Adresse je Zeile.' }

const REDIRECT_URIS: ConsoleInput = {
  name: 'redirectUris',
  label: { en: 'Where users return to', de: 'Wohin Nutzer zurückkehren' },
  hint: LINES,
  kind: 'lines',
  isOptional: true,
  value: ({ redirectUris }) => redirectUris.join('\n'),
}

const SCOPES: ConsoleInput = {
  name: 'scopes',
  label: { en: 'What it may ask users for', de: 'Worum es Nutzer bitten darf' },
  kind: 'choices',
  options: USER_SCOPES,
  value: ({ scopes }) => scopes,
}

const RESOURCE_SCOPES: ConsoleInput = {
  name: 'resourceScopes',
  label: { en: 'Scopes of resources', de: 'Scopes von Ressourcen' },
  hint: { en: 'One a line, such as reports:read.', de: 'Je Zeile einen, zum Beispiel reports:read.' },
  kind: 'lines',
  isOptional: true,
  value: ({ scopes }) => scopes.filter((scope: string) => !userScopes.has(scope)).join('\n'),
}

const adminScopesInput = (adminScopes: ConsoleDeclarations['adminScopes']): ConsoleInput => ({
  name: 'adminScopes',
  label: { en: 'What a service may do', de: 'Was ein Dienst darf' },
  kind: 'choices',
  // The API refuses these two: what they create would outlive the token.
  options: Object.entries(adminScopes).filter(
    ([scope]) => scope !== 'keys:write' && scope !== 'users:impersonate',
  ),
  value: item => item.adminScopes,
})

const create = (adminScopes: ConsoleDeclarations['adminScopes']): ConsoleAction => ({
  name: 'create',
  icon: 'plus',
  label: { en: 'Create a client', de: 'Client erzeugen' },
  explanation: {
    en: 'You get its id, and its secret if it has one, on the next page.',
    de: 'Seine Id und, falls er eines hat, sein Geheimnis stehen auf der nächsten Seite.',
  },
  scope: WRITE,
  needsKey: true,
  inputs: [
    {
      name: 'kind',
      label: { en: 'What is it?', de: 'Was ist es?' },
      kind: 'choice',
      options: Object.entries(KIND_TEXTS),
    },
    {
      name: 'name',
      label: NAME,
      hint: {
        en: 'Users see it when they allow access.',
        de: 'Nutzer sehen ihn, wenn sie Zugriff erlauben.',
      },
    },
    REDIRECT_URIS,
    SCOPES,
    RESOURCE_SCOPES,
    adminScopesInput(adminScopes),
  ],
  call: calls('POST /admin/clients', input => ({
    ...KINDS[(Object.hasOwn(KINDS, input.kind) ? input.kind : 'web') as keyof typeof KINDS],
    name: input.name ?? '',
    redirectUris: input.redirectUris ?? [],
    scopes: [...input.scopes, ...(input.resourceScopes ?? [])],
    adminScopes: input.adminScopes,
  })),
  shown: ({ id, secret }) => [
    [{ en: 'Client id', de: 'Client-Id' }, id],
    ...(secret === null ? [] : [[SECRET, secret] as const]),
  ],
  done: { en: 'The client is created', de: 'Der Client ist erzeugt' },
})

const isOwnMetadata = ({ documentUrl }: Item): boolean => documentUrl === null

const clientActions = (adminScopes: ConsoleDeclarations['adminScopes']): readonly ConsoleAction[] => [
  {
    name: 'edit',
    icon: 'edit',
    label: { en: 'Edit', de: 'Bearbeiten' },
    scope: WRITE,
    needsKey: true,
    isOffered: isOwnMetadata,
    inputs: [
      { name: 'name', label: NAME, value: ({ name }) => name },
      REDIRECT_URIS,
      SCOPES,
      RESOURCE_SCOPES,
      adminScopesInput(adminScopes),
    ],
    call: calls('PUT /admin/clients/:id', input => ({
      name: input.name ?? '',
      redirectUris: input.redirectUris ?? [],
      scopes: [...input.scopes, ...(input.resourceScopes ?? [])],
      adminScopes: input.adminScopes,
    })),
    done: { en: 'The client is changed.', de: 'Der Client ist geändert.' },
  },
  {
    name: 'rotate-secret',
    icon: 'key',
    label: { en: 'New secret', de: 'Neues Geheimnis' },
    explanation: {
      en: 'The current secret is valid for another day.',
      de: 'Das bisherige Geheimnis gilt noch einen Tag.',
    },
    scope: WRITE,
    needsKey: true,
    isOffered: ({ authMethod }) => authMethod.startsWith('client_secret'),
    call: calls('POST /admin/clients/:id/rotate-secret'),
    shown: ({ secret }) => [[SECRET, secret]],
    done: { en: 'The new secret', de: 'Das neue Geheimnis' },
  },
  {
    name: 'trust',
    icon: 'check',
    label: { en: 'It is ours', de: 'Er gehört uns' },
    explanation: {
      en: 'Users are not asked for their consent any more.',
      de: 'Nutzer werden nicht mehr um ihre Zustimmung gebeten.',
    },
    scope: TRUST,
    needsKey: true,
    isOffered: item => isOwnMetadata(item) && !item.firstParty && item.redirectUris.length > 0,
    call: calls('PUT /admin/clients/:id', () => ({ firstParty: true })),
    done: { en: 'Users are not asked any more.', de: 'Nutzer werden nicht mehr gefragt.' },
  },
  {
    name: 'ask',
    label: { en: 'Ask users', de: 'Nutzer fragen' },
    scope: TRUST,
    isOffered: ({ firstParty }) => firstParty,
    call: calls('PUT /admin/clients/:id', () => ({ firstParty: false })),
    done: { en: 'Users are asked for their consent.', de: 'Nutzer werden um ihre Zustimmung gebeten.' },
  },
  {
    name: 'block',
    icon: 'block',
    label: { en: 'Block', de: 'Sperren' },
    explanation: {
      en: 'Its tokens are refused from now on, and it gets no further ones.',
      de: 'Seine Tokens werden ab jetzt abgelehnt, und es bekommt keine weiteren.',
    },
    scope: WRITE,
    isDangerous: true,
    isOffered: ({ blocked }) => !blocked,
    call: calls('PUT /admin/clients/:id', () => ({ blocked: true })),
    done: { en: 'The client is blocked.', de: 'Der Client ist gesperrt.' },
  },
  {
    name: 'unblock',
    icon: 'check',
    label: { en: 'Unblock', de: 'Freigeben' },
    scope: WRITE,
    isOffered: ({ blocked }) => blocked,
    call: calls('PUT /admin/clients/:id', () => ({ blocked: false })),
    done: { en: 'The client may have tokens again.', de: 'Der Client darf wieder Tokens haben.' },
  },
  {
    name: 'delete',
    icon: 'remove',
    label: { en: 'Delete', de: 'Löschen' },
    explanation: {
      en: 'Its tokens, and the access that users have given it, end at once.',
      de: 'Seine Tokens und der Zugriff, den Nutzer ihm gegeben haben, enden sofort.',
    },
    scope: WRITE,
    isDangerous: true,
    needsKey: true,
    call: calls('DELETE /admin/clients/:id'),
    done: { en: 'The client is deleted.', de: 'Der Client ist gelöscht.' },
    next: 'clients',
  },
]

const clientsPage = (adminScopes: ConsoleDeclarations['adminScopes']): ConsolePage => {
  const texts = new Map(Object.entries(adminScopes))
  return {
    path: 'clients',
    title: { en: 'OAuth clients', de: 'OAuth-Clients' },
    icon: 'application',
    group: 'connections',
    lead: {
      en: 'Applications and programs that get access by OAuth.',
      de: 'Anwendungen und Programme, die über OAuth Zugriff bekommen.',
    },
    list: {
      scope: READ,
      api: '/admin/clients?limit=50',
      empty: { en: 'There is no client.', de: 'Es gibt keinen Client.' },
      link: ({ id }) => `clients/${id}`,
      columns: [
        textField({ en: 'Client', de: 'Client' }, 'name'),
        {
          label: { en: 'State', de: 'Zustand' },
          value: (item, context) => html`${badgesOf(item, context)}`,
          room: 'low',
        },
        KIND,
        RETURNS,
        { ...CREATED, room: 'wide' },
      ],
      also: ({ id, documentUrl }) => html`<code>${documentUrl ?? id}</code>`,
      actions: [create(adminScopes)],
    },
    item: {
      scope: READ,
      api: '/admin/clients/:id',
      title: ({ name }) => name,
      badges: badgesOf,
      fields: [
        {
          label: { en: 'Client id', de: 'Client-Id' },
          value: item => html`<code>${item.documentUrl ?? item.id}</code>`,
        },
        KIND,
        codeField({ en: 'Authentication', de: 'Authentifizierung' }, 'authMethod'),
        {
          label: { en: 'Where users return to', de: 'Wohin Nutzer zurückkehren' },
          value: ({ redirectUris }) => lines(redirectUris.map((uri: string) => html`<code>${uri}</code>`)),
        },
        {
          label: { en: 'What it may ask users for', de: 'Worum es Nutzer bitten darf' },
          value: ({ scopes }, context) => inWords(scopes, userScopes, context),
        },
        {
          label: { en: 'What a service may do', de: 'Was ein Dienst darf' },
          value: (item, context) => inWords(item.adminScopes, texts, context),
        },
      ],
      about: [
        wordField({ en: 'Origin', de: 'Herkunft' }, 'origin'),
        timeField(
          { en: 'Former secret valid until', de: 'Bisheriges Geheimnis gültig bis' },
          'formerSecretExpiresAt',
        ),
        CREATED,
        CHANGED,
      ],
      actions: clientActions(adminScopes),
    },
  }
}

/** Scopes with their descriptions, one a line. What is no description, the API refuses. */
const scopesIn = (entered: readonly string[] = []): Readonly<Record<string, string>> =>
  Object.fromEntries(
    entered.map(line => {
      const [scope = '', ...words] = line.split(/\s+/)
      return [scope, words.join(' ')]
    }),
  )

const RESOURCE_INPUTS: readonly ConsoleInput[] = [
  {
    name: 'identifier',
    label: { en: 'Identifier', de: 'Kennung' },
    hint: { en: 'A URI such as https://api.example.com', de: 'Eine URI wie https://api.example.com' },
    value: ({ identifier }) => identifier,
  },
  { name: 'name', label: NAME, value: ({ name }) => name },
  {
    name: 'scopes',
    label: { en: 'Scopes', de: 'Scopes' },
    hint: {
      en: 'One a line with what it allows: reports:read Read your reports',
      de: 'Je Zeile einer mit dem, was er erlaubt: reports:read Read your reports',
    },
    kind: 'lines',
    isOptional: true,
    value: ({ scopes }) =>
      Object.entries(scopes)
        .map(([scope, description]) => `${scope} ${description}`)
        .join('\n'),
  },
  {
    name: 'clientIds',
    label: { en: 'Clients that may introspect its tokens', de: 'Clients, die seine Tokens prüfen dürfen' },
    hint: { en: 'One id a line.', de: 'Eine Id je Zeile.' },
    kind: 'lines',
    isOptional: true,
    value: ({ clientIds }) => clientIds.join('\n'),
  },
]

const resourceIn = (input: Parameters<ConsoleAction['call']>[1]): object => ({
  identifier: input.identifier ?? '',
  name: input.name ?? '',
  scopes: scopesIn(input.scopes),
  clientIds: input.clientIds ?? [],
})

const RESOURCES: ConsolePage = {
  path: 'resources',
  title: { en: 'Resources', de: 'Ressourcen' },
  icon: 'shield',
  group: 'connections',
  lead: {
    en: 'APIs beside this service that accept its tokens.',
    de: 'APIs neben diesem Dienst, die seine Tokens annehmen.',
  },
  list: {
    scope: READ,
    api: '/admin/resources',
    empty: { en: 'There is no resource.', de: 'Es gibt keine Ressource.' },
    link: ({ id }) => `resources/${id}`,
    columns: [
      textField(NAME, 'name'),
      { ...codeField({ en: 'Identifier', de: 'Kennung' }, 'identifier'), room: 'low' },
      {
        label: { en: 'Scopes', de: 'Scopes' },
        value: ({ scopes }) => Object.keys(scopes).join(', '),
        room: 'mid',
      },
      { ...CREATED, room: 'wide' },
    ],
    actions: [
      {
        name: 'create',
        icon: 'plus',
        label: { en: 'Add a resource', de: 'Ressource hinzufügen' },
        scope: WRITE,
        inputs: RESOURCE_INPUTS,
        call: calls('POST /admin/resources', resourceIn),
        done: { en: 'The resource is added.', de: 'Die Ressource ist hinzugefügt.' },
      },
    ],
  },
  item: {
    scope: READ,
    api: '/admin/resources/:id',
    title: ({ name }) => name,
    fields: [
      codeField({ en: 'Id', de: 'Id' }, 'id'),
      codeField({ en: 'Identifier', de: 'Kennung' }, 'identifier'),
      {
        label: { en: 'Scopes', de: 'Scopes' },
        value: ({ scopes }) =>
          lines(
            Object.entries<string>(scopes).map(
              ([scope, description]) => html`<code>${scope}</code> <span class="hint">${description}</span>`,
            ),
          ),
      },
      listField(
        { en: 'Clients that may introspect its tokens', de: 'Clients, die seine Tokens prüfen dürfen' },
        'clientIds',
      ),
      CREATED,
      CHANGED,
    ],
    actions: [
      {
        name: 'edit',
        icon: 'edit',
        label: { en: 'Edit', de: 'Bearbeiten' },
        scope: WRITE,
        inputs: RESOURCE_INPUTS,
        call: calls('PUT /admin/resources/:id', resourceIn),
        done: { en: 'The resource is changed.', de: 'Die Ressource ist geändert.' },
      },
      {
        name: 'delete',
        icon: 'remove',
        label: { en: 'Delete', de: 'Löschen' },
        explanation: {
          en: 'No further tokens are issued for it.',
          de: 'Für sie werden keine weiteren Tokens ausgestellt.',
        },
        scope: WRITE,
        isDangerous: true,
        call: calls('DELETE /admin/resources/:id'),
        done: { en: 'The resource is deleted.', de: 'Die Ressource ist gelöscht.' },
        next: 'resources',
      },
    ],
  },
}

const said = (en: string, de: string, isBad = false): EventSentence => ({
  own: { en: `{actor} ${en}`, de: `{actor} ${de}` },
  icon: 'application',
  ...(isBad && { isBad: true }),
})

const EVENTS: Readonly<Record<string, EventSentence>> = {
  'client.created': said('registered a client', 'hat einen Client registriert'),
  'client.changed': said('changed a client', 'hat einen Client geändert'),
  'client.secret-rotated': said(
    'gave a client another secret',
    'hat einem Client ein neues Geheimnis gegeben',
  ),
  'client.deleted': said('deleted a client', 'hat einen Client gelöscht', true),
  'resource.created': said('added a resource', 'hat eine Ressource hinzugefügt'),
  'resource.changed': said('changed a resource', 'hat eine Ressource geändert'),
  'resource.deleted': said('deleted a resource', 'hat eine Ressource gelöscht', true),
  'grant.created': said('gave an application access', 'hat einer Anwendung Zugriff gegeben'),
  'device.approved': said('connected a device', 'hat ein Gerät verbunden'),
  'grant.revoked': said('ended the access of an application', 'hat den Zugriff einer Anwendung beendet'),
  'grant.reused': said(
    'used a replaced token of an application, whose access has ended',
    'hat ein ersetztes Token einer Anwendung verwendet, deren Zugriff damit beendet ist',
    true,
  ),
}

const ERROR_TEXTS: Readonly<Record<string, Text>> = {
  redirectUriRequired: {
    en: 'Enter an address where users return to.',
    de: 'Geben Sie eine Adresse ein, zu der Nutzer zurückkehren.',
  },
  redirectUriUnused: {
    en: 'A service has no address where users return to.',
    de: 'Ein Dienst hat keine Adresse, zu der Nutzer zurückkehren.',
  },
  adminScopesUnused: {
    en: 'Only a service has scopes of its own.',
    de: 'Nur ein Dienst hat eigene Scopes.',
  },
  firstPartyOnDevice: {
    en: 'Users are always asked about programs on their devices.',
    de: 'Bei Programmen auf ihren Geräten werden Nutzer immer gefragt.',
  },
  clientNotFound: { en: 'There is no such client.', de: 'Diesen Client gibt es nicht.' },
  clientOfDocument: {
    en: 'What this client is, stands in its metadata document. Here it can only be blocked or deleted.',
    de: 'Was dieser Client ist, steht in seinem Metadaten-Dokument. Hier lässt er sich nur sperren oder löschen.',
  },
  clientChanged: {
    en: 'The client was changed at the same time. Try again.',
    de: 'Der Client wurde gleichzeitig geändert. Versuchen Sie es noch einmal.',
  },
  clientWithoutSecret: { en: 'The client has no secret.', de: 'Der Client hat kein Geheimnis.' },
  tooManyClients: {
    en: 'There are 10,000 clients. Delete one first.',
    de: 'Es gibt schon 10.000 Clients. Löschen Sie erst einen.',
  },
  identifierInvalid: {
    en: 'Enter a URI such as https://api.example.com, without a fragment.',
    de: 'Geben Sie eine URI ein wie https://api.example.com, ohne Fragment.',
  },
  identifierOfService: {
    en: 'This identifier stands for the service itself.',
    de: 'Diese Kennung steht für den Dienst selbst.',
  },
  identifierTaken: {
    en: 'Another resource has this identifier.',
    de: 'Eine andere Ressource hat diese Kennung.',
  },
  resourceNotFound: { en: 'There is no such resource.', de: 'Diese Ressource gibt es nicht.' },
  resourceChanged: {
    en: 'The resource was changed at the same time. Try again.',
    de: 'Die Ressource wurde gleichzeitig geändert. Versuchen Sie es noch einmal.',
  },
  tooManyResources: {
    en: 'There are 1,000 resources. Delete one first.',
    de: 'Es gibt schon 1.000 Ressourcen. Löschen Sie erst eine.',
  },
}

const WORDS: Readonly<Record<string, Text>> = {
  registered: { en: 'registered itself', de: 'hat sich selbst registriert' },
  document: { en: 'metadata document', de: 'Metadaten-Dokument' },
}

export const scopes: Readonly<Record<string, string>> = {
  'clients:read': 'Clients und Ressourcen des Autorisierungsservers auflisten und lesen',
  'clients:write': 'Clients und Ressourcen erzeugen, ändern und löschen',
  'clients:register': 'Clients über OAuth registrieren, bei denen Nutzer gefragt werden',
  'clients:trust': 'Clients von der Zustimmung der Nutzer und von PKCE ausnehmen',
}

export const settings: Readonly<Record<string, string>> = {
  OAUTH: 'Ob andere Anwendungen und Programme Zugriff per OAuth bekommen',
  OAUTH_REGISTRATION:
    'Ob Clients sich selbst registrieren: `token` mit Admin-Schlüssel, `loopback` ohne einen, für Programme auf Geräten von Nutzern',
  OAUTH_ALLOWED_HOSTS:
    'Hosts von Clients, die private Adressen und HTTP ohne TLS haben dürfen, zum Beispiel localhost:4000',
  OAUTH_METADATA_CLIENTS:
    'Hosts von Clients, deren Id die URL ihrer Metadaten ist, zum Beispiel app.example.com; `*` für alle',
  OAUTH_ACCESS_TOKEN: 'Lebensdauer der Zugriffstokens von Clients',
  OAUTH_GRANT: 'Zeit, nach der ein Nutzer einem Client von neuem Zugriff geben muss',
  OAUTH_GRANT_IDLE: 'Zeit ohne Erneuerung, nach der ein Zugriff endet',
  OAUTH_RSA_KEY: 'RSA-Schlüssel, der ID-Tokens signiert',
  OAUTH_RSA_KEY_PREVIOUS: 'Ein weiterer RSA-Schlüssel, der nur veröffentlicht wird',
  OAUTH_REFRESH_WINDOW: 'Zeit, in der ein Refresh-Token eines Clients ohne Geheimnis nicht ersetzt wird',
}

export default ({ adminScopes, featureSettings }: ConsoleDeclarations): ConsoleParts => ({
  events: EVENTS,
  errors: ERROR_TEXTS,
  words: WORDS,
  pages: featureSettings.OAUTH === 'on' ? [clientsPage(adminScopes), RESOURCES] : [],
})
