/** Webhooks in the console. */
import {
  badge,
  type ConsoleAction,
  type ConsoleDeclarations,
  type ConsoleField,
  type ConsoleInput,
  type ConsoleParts,
  calls,
  codeField,
  type EventSentence,
  type Text,
  textField,
  timeField,
  wordField,
} from '#http/pages/feature-pages'

const SCOPE = 'webhooks:write'

const STATES: Readonly<Record<string, Text>> = {
  enabled: { en: 'delivers', de: 'liefert' },
  paused: { en: 'paused', de: 'angehalten' },
  disabled: { en: 'disabled', de: 'abgeschaltet' },
}

const COLOURS: Readonly<Record<string, 'good' | 'bad'>> = { enabled: 'good', disabled: 'bad' }

const URL_FIELD = textField({ en: 'URL', de: 'URL' }, 'url')

const STATE: ConsoleField = {
  label: { en: 'State', de: 'Zustand' },
  value: ({ state, disabledReason }, { say, word }) =>
    badge(
      `${say(STATES[state] ?? { en: state, de: state })}${disabledReason === null ? '' : ` (${word(disabledReason)})`}`,
      COLOURS[state],
    ),
}

const DESCRIPTION = textField({ en: 'Description', de: 'Beschreibung' }, 'description')

const TYPES: ConsoleField = {
  label: { en: 'Events', de: 'Ereignisse' },
  value: ({ types }, { say }) => {
    if (types === null) return say({ en: 'all', de: 'alle' })
    return types.length === 1 ? types[0] : types.length
  },
}

/** All of them, on the page of a webhook. */
const ALL_TYPES: ConsoleField = {
  ...TYPES,
  value: ({ types }, { say }) => (types === null ? say({ en: 'all', de: 'alle' }) : types.join(', ')),
}

const CREATED = timeField({ en: 'Created', de: 'Erzeugt' }, 'createdAt')

const SECRET: Text = { en: 'Secret', de: 'Geheimnis' }

/** An action that only calls a route. */
const plain = (name: string, label: Text, done: Text, more: Partial<ConsoleAction> = {}): ConsoleAction => ({
  name,
  label,
  done,
  scope: SCOPE,
  call: calls(`POST /admin/webhooks/:id/${name}`),
  ...more,
})

const create = (inputs: readonly ConsoleInput[]): ConsoleAction => ({
  name: 'create',
  icon: 'plus',
  label: { en: 'Create a webhook', de: 'Webhook erzeugen' },
  scope: SCOPE,
  needsKey: true,
  inputs,
  call: calls('POST /admin/webhooks', ({ url = '', description = null, types }) => ({
    url,
    description,
    types: types.length === 0 ? null : types,
  })),
  shown: ({ secret }) => [[SECRET, secret]],
  done: { en: 'The webhook is created', de: 'Der Webhook ist erzeugt' },
})

const ACTIONS: readonly ConsoleAction[] = [
  plain(
    'pause',
    { en: 'Pause', de: 'Anhalten' },
    { en: 'Deliveries are paused.', de: 'Die Lieferungen sind angehalten.' },
    {
      explanation: { en: 'Its events wait.', de: 'Seine Ereignisse warten.' },
      isOffered: ({ state }) => state === 'enabled',
    },
  ),
  plain(
    'resume',
    { en: 'Resume', de: 'Fortsetzen' },
    { en: 'Deliveries continue.', de: 'Die Lieferungen gehen weiter.' },
    { isOffered: ({ state }) => state !== 'enabled' },
  ),
  plain(
    'skip',
    { en: 'Skip the failing event', de: 'Fehlerhaftes Ereignis auslassen' },
    { en: 'The event is left out.', de: 'Das Ereignis ist ausgelassen.' },
    {
      isDangerous: true,
      isOffered: ({ failedEventId }) => failedEventId !== null,
      call: calls('POST /admin/webhooks/:id/resume', () => ({ skip: true })),
    },
  ),
  plain(
    'ping',
    { en: 'Ping', de: 'Ping' },
    { en: 'A ping is sent soon.', de: 'Ein Ping wird gleich gesendet.' },
  ),
  plain(
    'replay',
    { en: 'Replay', de: 'Wiederholen' },
    { en: 'Deliveries begin there again.', de: 'Die Lieferungen beginnen dort von Neuem.' },
    {
      inputs: [
        {
          name: 'from',
          label: { en: 'From', de: 'Ab' },
          hint: {
            en: 'A time such as 2026-01-31T09:30:00Z, or the id of an event.',
            de: 'Eine Zeit wie 2026-01-31T09:30:00Z oder die Id eines Ereignisses.',
          },
        },
      ],
      call: calls('POST /admin/webhooks/:id/replay', ({ from = '' }) => ({ from })),
    },
  ),
  plain(
    'rotate-secret',
    { en: 'New secret', de: 'Neues Geheimnis' },
    { en: 'The new secret', de: 'Das neue Geheimnis' },
    {
      explanation: {
        en: 'The former secret signs for another day.',
        de: 'Das bisherige Geheimnis unterschreibt noch einen Tag.',
      },
      needsKey: true,
      shown: ({ secret }) => [[SECRET, secret]],
    },
  ),
  plain(
    'delete',
    { en: 'Delete', de: 'Löschen' },
    { en: 'The webhook is deleted.', de: 'Der Webhook ist gelöscht.' },
    {
      isDangerous: true,
      call: calls('DELETE /admin/webhooks/:id'),
      next: 'webhooks',
    },
  ),
]

const said = (en: string, de: string): EventSentence => ({
  own: { en: `{actor} ${en}`, de: `{actor} hat ${de}` },
  icon: 'webhook',
})

const EVENTS: Readonly<Record<string, EventSentence>> = {
  'webhook.created': said('created a webhook', 'einen Webhook erzeugt'),
  'webhook.changed': said('changed a webhook', 'einen Webhook geändert'),
  'webhook.deleted': { ...said('deleted a webhook', 'einen Webhook gelöscht'), isBad: true },
  'webhook.secret-rotated': said(
    'made a new secret of a webhook',
    'ein neues Geheimnis eines Webhooks erzeugt',
  ),
  'webhook.paused': said('paused a webhook', 'einen Webhook angehalten'),
  'webhook.resumed': said('resumed a webhook', 'einen Webhook fortgesetzt'),
  'webhook.replayed': said('replayed a webhook', 'einen Webhook wiederholt'),
  'webhook.disabled': {
    ...said(
      'switched off a webhook, whose deliveries failed',
      'einen Webhook abgeschaltet, dessen Lieferungen scheiterten',
    ),
    isBad: true,
  },
}

const WORDS: Readonly<Record<string, Text>> = {
  delivered: { en: 'delivered', de: 'geliefert' },
  rejected: { en: 'rejected', de: 'abgelehnt' },
  timeout: { en: 'timed out', de: 'Zeit abgelaufen' },
  connection: { en: 'no connection', de: 'keine Verbindung' },
  tls: { en: 'TLS failed', de: 'TLS gescheitert' },
  blocked: { en: 'address not allowed', de: 'Adresse nicht erlaubt' },
  gone: { en: 'the receiver has ended it', de: 'der Empfänger hat ihn beendet' },
  failing: { en: 'it failed for too long', de: 'er scheiterte zu lange' },
}

const ERROR_TEXTS: Readonly<Record<string, Text>> = {
  webhookUrlInvalid: {
    en: 'Enter a URL such as https://example.com/webhooks, without user and fragment.',
    de: 'Geben Sie eine URL ein wie https://example.com/webhooks, ohne Nutzer und Fragment.',
  },
  webhookUrlBlocked: {
    en: 'The URL must begin with https:// and lead to public addresses, unless WEBHOOK_ALLOWED_HOSTS has its host.',
    de: 'Die URL muss mit https:// beginnen und zu öffentlichen Adressen führen, außer WEBHOOK_ALLOWED_HOSTS enthält ihren Host.',
  },
  webhookUrlUnresolved: {
    en: 'The host of the URL has no address.',
    de: 'Der Host der URL hat keine Adresse.',
  },
  replayFromInvalid: {
    en: 'Enter a time such as 2026-01-31T09:30:00Z, or the id of an event.',
    de: 'Geben Sie eine Zeit ein wie 2026-01-31T09:30:00Z, oder die Id eines Ereignisses.',
  },
  encryptionKeyMissing: {
    en: 'The service has no ENCRYPTION_KEY, so webhooks cannot be created.',
    de: 'Der Dienst hat keinen ENCRYPTION_KEY. Deshalb lassen sich keine Webhooks erzeugen.',
  },
  webhookNotFound: { en: 'There is no such webhook.', de: 'Diesen Webhook gibt es nicht.' },
  tooManyWebhooks: {
    en: 'There are 100 webhooks. Delete one first.',
    de: 'Es gibt schon 100 Webhooks. Löschen Sie erst einen.',
  },
  webhookChanged: {
    en: 'The webhook was changed at the same time. Try again.',
    de: 'Der Webhook wurde gleichzeitig geändert. Versuchen Sie es noch einmal.',
  },
  webhookNotFailing: {
    en: 'No event of the webhook fails, so there is none to skip.',
    de: 'Kein Ereignis des Webhooks schlägt fehl. Es gibt also keines auszulassen.',
  },
  webhookSecretUnreadable: {
    en: 'The secret cannot be decrypted. Configure the ENCRYPTION_KEY that encrypted it.',
    de: 'Das Geheimnis lässt sich nicht entschlüsseln. Konfigurieren Sie den ENCRYPTION_KEY, mit dem es verschlüsselt ist.',
  },
}

export const scopes: Readonly<Record<string, string>> = {
  'webhooks:write': 'Webhooks verwalten, an die die Ereignisse aller Nutzer gesendet werden',
}

export const settings: Readonly<Record<string, string>> = {
  WEBHOOK_ALLOWED_HOSTS: 'Hosts von Webhooks, die private Adressen und HTTP haben dürfen',
  WEBHOOK_TIMEOUT: 'Zeit für die ganze Antwort eines Empfängers von Webhooks',
  OPERATOR_EMAIL: 'Adresse, an die der Dienst schreibt, was ein Betreiber wissen soll',
}

export default ({ eventTypes }: ConsoleDeclarations): ConsoleParts => ({
  events: EVENTS,
  words: WORDS,
  errors: ERROR_TEXTS,
  plots: [
    {
      title: { en: 'Lag of webhooks', de: 'Rückstand der Webhooks' },
      unit: { en: 'seconds', de: 'Sekunden' },
      metric: 'gatehouse_webhook_lag_seconds',
      kind: 'gauge',
    },
  ],
  pages: [
    {
      path: 'webhooks',
      title: { en: 'Webhooks', de: 'Webhooks' },
      icon: 'webhook',
      group: 'connections',
      lead: {
        en: 'Your services learn of events as they happen.',
        de: 'Ihre Dienste erfahren von Ereignissen, sobald sie geschehen.',
      },
      list: {
        scope: SCOPE,
        api: '/admin/webhooks',
        empty: { en: 'There is no webhook.', de: 'Es gibt keinen Webhook.' },
        link: ({ id }) => `webhooks/${id}`,
        columns: [URL_FIELD, STATE, { ...TYPES, room: 'wide' }, { ...CREATED, room: 'mid' }],
        also: ({ description }) => description,
        actions: [
          create([
            {
              name: 'url',
              label: { en: 'URL', de: 'URL' },
              hint: { en: 'It begins with https://', de: 'Sie beginnt mit https://' },
            },
            { name: 'description', label: DESCRIPTION.label, isOptional: true },
            {
              name: 'types',
              label: { en: 'Events (none: all)', de: 'Ereignisse (keines: alle)' },
              kind: 'choices',
              options: eventTypes.map(type => [type, type] as const),
            },
          ]),
        ],
      },
      item: {
        scope: SCOPE,
        api: '/admin/webhooks/:id',
        title: ({ url }) => url,
        fields: [
          codeField({ en: 'Id', de: 'Id' }, 'id'),
          URL_FIELD,
          DESCRIPTION,
          STATE,
          ALL_TYPES,
          textField(
            { en: 'Failed attempts at the next event', de: 'Fehlversuche beim nächsten Ereignis' },
            'failures',
          ),
          timeField({ en: 'Next attempt', de: 'Nächster Versuch' }, 'retryAt'),
          codeField({ en: 'Public key', de: 'Öffentlicher Schlüssel' }, 'publicKey'),
          CREATED,
        ],
        actions: ACTIONS,
        sections: [
          {
            name: 'attempts',
            title: { en: 'Last attempts', de: 'Letzte Versuche' },
            scope: SCOPE,
            api: '/admin/webhooks/:id/attempts',
            empty: { en: 'Nothing was sent yet.', de: 'Noch wurde nichts gesendet.' },
            columns: [
              timeField({ en: 'Time', de: 'Zeit' }, 'at'),
              codeField({ en: 'Event', de: 'Ereignis' }, 'type'),
              { ...textField({ en: 'Attempt', de: 'Versuch' }, 'attempt'), room: 'wide' },
              wordField({ en: 'Outcome', de: 'Ergebnis' }, 'outcome'),
              { ...textField({ en: 'Status', de: 'Status' }, 'status'), room: 'low' },
              {
                label: { en: 'Duration', de: 'Dauer' },
                value: ({ durationMs }) => `${durationMs} ms`,
                room: 'mid',
              },
            ],
          },
        ],
      },
    },
  ],
})
