/** The errors, events, mails, settings and metrics of webhooks, which their use cases need. `feature.ts` declares the feature. */
import { Type } from '@sinclair/typebox'
import { allowedHosts } from '#base/http-client/http-client'
import { counter, gauge, kept } from '#base/statistics/metric'
import { type DepsOf, defineErrors, duration, type Reader, SettingError } from '#feature/declaration'
import { newEmailViolations } from '#http/validation/formats'
import { storedWebhooks } from './stored-webhooks.ts'
import { type DisabledReason, MAX_WEBHOOKS } from './webhook.ts'

const webhook = Type.String({ description: 'The id of the webhook' })
const OfWebhook = Type.Object({ webhook })

export const ERRORS = defineErrors({
  webhookUrlInvalid: {
    status: 400,
    field: 'url',
    message: 'must be a URL such as https://example.com/webhooks, without user and fragment',
  },
  webhookUrlBlocked: {
    status: 400,
    field: 'url',
    message:
      'must begin with https:// and lead to public addresses, unless WEBHOOK_ALLOWED_HOSTS has its host',
  },
  webhookUrlUnresolved: { status: 400, field: 'url', message: 'has a host that has no address' },
  replayFromInvalid: {
    status: 400,
    field: 'from',
    message: 'must be a timestamp such as 2026-01-31T09:30:00Z, or the id of an event of the audit log',
  },
  encryptionKeyMissing: {
    status: 403,
    message: 'This service has no ENCRYPTION_KEY, so webhooks cannot be created',
  },
  webhookNotFound: { status: 404, message: 'There is no such webhook' },
  tooManyWebhooks: { status: 409, message: `There are ${MAX_WEBHOOKS} webhooks: delete one first` },
  webhookChanged: { status: 409, message: 'The webhook was changed at the same time: read it and try again' },
  webhookNotFailing: { status: 409, message: 'No event of the webhook fails, so there is none to skip' },
  webhookSecretUnreadable: {
    status: 503,
    message: 'The secret of the webhook cannot be decrypted: configure the ENCRYPTION_KEY that encrypted it',
  },
})

const emailAddress: Reader<string> = text => {
  if (newEmailViolations(text).length > 0)
    throw new SettingError('must be an e-mail address such as ops@example.com', text)
  return text
}

type DisabledValue = {
  readonly id: string
  /** Without path and query. */
  readonly host: string
  readonly reason: DisabledReason
}

const MAILS = {
  webhookDisabled: {
    isRateLimited: false,
    places: ({ id, host: receiver }: DisabledValue) => ({ id, receiver }),
    example: { id: '00000000-0000-7000-8000-000000000000', host: 'hooks.example.com', reason: 'failing' },
    more: (texts: Readonly<Record<DisabledReason | 'waiting', string>>, { reason }: DisabledValue) => [
      texts[reason],
      texts.waiting,
    ],
    code: ({ id }: DisabledValue) => `POST /admin/webhooks/${id}/resume`,
    en: {
      subject: 'A webhook is disabled',
      text: 'The webhook {id} of {product}, to {receiver}, is disabled.',
      gone: 'Its receiver has responded with 410 Gone.',
      failing: 'Its receiver has accepted an event at none of ten attempts.',
      waiting:
        'Its events wait, for as long as the audit log keeps them. When the receiver works again, resume it in the console, or with:',
    },
  },
}

export const definitions = {
  ...storedWebhooks,
  events: {
    'webhook.created': OfWebhook,
    'webhook.changed': OfWebhook,
    'webhook.deleted': OfWebhook,
    'webhook.secret-rotated': OfWebhook,
    'webhook.paused': OfWebhook,
    'webhook.resumed': Type.Object({
      webhook,
      skipped: Type.Optional(Type.String({ description: 'The id of the event that was left out' })),
    }),
    'webhook.replayed': Type.Object({
      webhook,
      from: Type.String({ description: 'Where the deliveries begin: a timestamp, or the id of an event' }),
    }),
    'webhook.disabled': Type.Object({
      webhook,
      reason: Type.String({ description: '`gone`: the receiver responded with 410; `failing`' }),
    }),
  },
  mails: MAILS,
  errors: ERRORS,
  adminScopes: { 'webhooks:write': 'Manage webhooks, which are sent the events of all users' },
  settings: {
    WEBHOOK_ALLOWED_HOSTS: {
      read: allowedHosts,
      default: '',
      shown: true,
      description:
        'Hosts of webhooks that may have private addresses and plain HTTP, such as localhost:4000, separated by commas',
    },
    WEBHOOK_TIMEOUT: {
      read: duration('1s', '60s'),
      default: '15s',
      shown: true,
      description: 'Time for the complete response of a receiver of webhooks, 1s to 60s',
    },
    OPERATOR_EMAIL: {
      read: emailAddress,
      default: null,
      shown: true,
      description:
        'Address to which the service mails what an operator should know, such as a disabled webhook',
    },
  },
  metrics: {
    gatehouse_webhook_attempts_total: counter(
      'Attempts to deliver an event to a webhook by outcome',
      'outcome',
    ),
    gatehouse_webhook_waiting_events: gauge(
      'max',
      'Events that an enabled webhook has not passed, 10,000 at most; as every process sees it',
      'webhook',
    ),
    gatehouse_webhook_lag_seconds: kept(
      gauge('max', 'Age of the next event of an enabled webhook; as every process sees it', 'webhook'),
    ),
  },
  routes: new URL('routes/', import.meta.url),
  console: () => import('./console-pages.ts'),
} as const

export type WebhooksDeps = DepsOf<typeof definitions>
