/** TypeBox schemas of webhooks. */
import { type SchemaOptions, Type } from '@sinclair/typebox'
import {
  Id,
  NullableText,
  NullableTimestamp,
  OptionalBody,
  Strict,
  Timestamp,
  withExample,
} from '#routes/schemas'

const Nullable = <Value>(type: string, options: SchemaOptions) =>
  Type.Unsafe<Value | null>({ type: [type, 'null'], ...options })

const literals = <Values extends readonly string[]>(...values: Values) =>
  Type.Unsafe<Values[number]>({ type: 'string', enum: values })

const webhookProperties = {
  id: Id,
  url: Type.String({
    description: 'Without the query, which may be secret',
    examples: ['https://example.com/webhooks'],
  }),
  description: withExample(NullableText, 'Billing'),
  types: Nullable<readonly string[]>('array', {
    items: { type: 'string' },
    description: 'Types of events; `null`: all',
    examples: [['user.created', 'user.deleted']],
  }),
  state: literals('enabled', 'paused', 'disabled'),
  disabledReason: Nullable<'gone' | 'failing'>('string', {
    enum: ['gone', 'failing', null],
    description:
      '`gone`: the receiver responded with 410; `failing`: it accepted an event at none of ten attempts',
    examples: [null],
  }),
  failures: Type.Integer({ description: 'Attempts for the next event that failed', examples: [0] }),
  failedEventId: Nullable<string>('string', { format: 'uuid', description: 'The event that fails' }),
  retryAt: withExample(NullableTimestamp, null),
  publicKey: Nullable<string>('string', {
    description:
      'Verifies `v1a` signatures: `whpk_` and base64 of an Ed25519 key; `null` unless the service signs tokens with EdDSA',
    examples: [null],
  }),
  createdAt: Timestamp,
}

const Secret = Type.String({
  description: 'Verifies `v1` signatures; shown only here',
  examples: ['whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD4hiVxS+3zVI='],
})

export const Webhook = Type.Object(webhookProperties, { title: 'Webhook' })

export const CreatedWebhook = Type.Object(
  { ...webhookProperties, secret: Secret },
  { title: 'CreatedWebhook' },
)

export const WebhookList = Type.Object({ results: Type.Array(Webhook) }, { title: 'WebhookList' })

export const RotatedSecret = Type.Object(
  { secret: Secret, formerSecretExpiresAt: Timestamp },
  { title: 'RotatedSecret' },
)

export const RequestedPing = Type.Object(
  { id: Type.String({ format: 'uuid', description: '`webhook-id` of the message' }) },
  { title: 'RequestedPing' },
)

export const ReplayedWebhook = Type.Object(
  {
    ...webhookProperties,
    removedBefore: Nullable<string>('string', {
      format: 'date-time',
      description: 'Events before this time may have been removed (`EVENTS_KEPT`); `null`: all are delivered',
      examples: [null],
    }),
  },
  { title: 'ReplayedWebhook' },
)

export const WebhookAttemptList = Type.Object(
  {
    results: Type.Array(
      Type.Object(
        {
          id: Id,
          eventId: Type.String({ format: 'uuid', description: '`webhook-id`: of the event, or of a ping' }),
          type: Type.String({ examples: ['user.created'] }),
          attempt: Type.Integer({ description: '1 for the first one at the event', examples: [1] }),
          at: Timestamp,
          durationMs: Type.Integer({ examples: [31] }),
          status: Nullable<number>('integer', { description: '`null` without a response', examples: [204] }),
          outcome: literals('delivered', 'rejected', 'timeout', 'connection', 'tls', 'blocked', 'unresolved'),
        },
        { title: 'WebhookAttempt' },
      ),
    ),
  },
  { title: 'WebhookAttemptList' },
)

/** The URL of a webhook, at most as long as browsers and servers accept. */
const Url = Type.String({
  minLength: 1,
  maxLength: 2_048,
  description: 'HTTPS; a query may contain a secret',
  examples: ['https://example.com/webhooks'],
})

const Description = Nullable<string>('string', {
  maxLength: 200,
  description: 'By which you recognise it',
  examples: ['Billing'],
})

/** @param types of all events. */
const Types = (types: readonly string[]) =>
  Nullable<readonly string[]>('array', {
    items: { type: 'string', enum: [...types] },
    minItems: 1,
    maxItems: types.length,
    uniqueItems: true,
    description: 'Types of events; `null`: all',
    examples: [['user.created', 'user.deleted']],
  })

export const NewWebhook = (types: readonly string[]) =>
  Strict({ url: Url, types: Type.Optional(Types(types)), description: Type.Optional(Description) })

export const ChangedWebhook = (types: readonly string[]) =>
  Strict(
    {
      url: Type.Optional(Url),
      types: Type.Optional(Types(types)),
      description: Type.Optional(Description),
    },
    { minProperties: 1 },
  )

export const ResumedWebhook = OptionalBody({
  skip: Type.Optional(Type.Boolean({ description: 'Leaves out the event that fails', examples: [true] })),
})

export const Replay = Strict({
  from: Type.String({
    minLength: 1,
    maxLength: 64,
    description: 'A timestamp, or the id of an event: the first that is delivered',
    examples: ['2026-01-31T09:30:00Z'],
  }),
})
