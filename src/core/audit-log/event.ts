/** Events of the audit log, and their types. */
import { type Static, type TObject, type TProperties, Type } from '@sinclair/typebox'
import { newId } from '#base/ids'

export const ACTOR_TYPES = [
  'user',
  'apiKey',
  'client',
  'adminKey',
  'administrator',
  'anonymous',
  'system',
] as const

/**
 * A user, an API key of theirs, a client to which they have granted access, the holder of an admin key (or a client with a token of its
 * own), a user who administers in the console, an unidentified client, or the operator.
 */
export interface Actor {
  readonly type: (typeof ACTOR_TYPES)[number]
  /** The id of the user, key or client. */
  readonly id: string | null
  readonly ip: string | null
}

export const anonymous = (ip: string | null): Actor => ({ type: 'anonymous', id: null, ip })

export const actingUser = (id: string, ip: string | null): Actor => ({ type: 'user', id, ip })

/** The operator on the command line, or a job of a feature. */
export const OPERATOR: Actor = { type: 'system', id: null, ip: null }

const NoDetails = Type.Object({})
const ChangedFields = Type.Object({
  fields: Type.Array(Type.String(), { description: 'The changed fields of the user' }),
})
const Session = Type.Object({ session: Type.String({ description: 'The id of the session' }) })
const SignIn = Type.Object({
  ...Session.properties,
  method: Type.Optional(Type.String({ description: 'The sign-in method' })),
})
const AllSessions = Type.Object({
  except: Type.Optional(Type.String({ description: 'The id of the session that was kept' })),
})
const Confirmation = Type.Object({
  emptied: Type.Optional(
    Type.Boolean({ description: 'Whether it was a sign-in by the mailbox alone, which emptied the account' }),
  ),
})

/** Every type of event, with the schema of its details. */
export const EVENTS = {
  'user.created': NoDetails,
  'user.sign-up-requested': NoDetails,
  'user.signed-up': NoDetails,
  'user.sign-up-repeated': NoDetails,
  'user.signed-in': SignIn,
  'user.impersonated': Session,
  'user.changed': ChangedFields,
  'user.disabled': ChangedFields,
  'user.enabled': ChangedFields,
  'user.deleted': NoDetails,
  'session.sign-in-throttled': NoDetails,
  'session.reauthenticated': Session,
  'session.ended': Session,
  'sessions.ended': AllSessions,
  'password.changed': NoDetails,
  'password.reset-requested': NoDetails,
  'password.reset': NoDetails,
  'password.removed': NoDetails,
  'email.verification-requested': NoDetails,
  'email.verified': Confirmation,
  'email.change-requested': NoDetails,
  'email.changed': NoDetails,
  'email.change-rejected': NoDetails,
  'factors.removed': NoDetails,
} satisfies Record<string, TObject>

export type EventType = keyof typeof EVENTS

export type EventDetails<Of extends EventType = EventType> = Static<(typeof EVENTS)[Of]>

export type EventSchemas = Readonly<Record<string, TObject>>

export const detailProperties = (schemas: EventSchemas): TProperties =>
  Object.assign({}, ...Object.values(schemas).map(({ properties }) => properties))

/**
 * It contains no secrets. Its only personal data is the client's address, which is erased with the account.
 * @template UserId `null` for an event that concerns no user.
 */
export interface AuditEvent<UserId extends string | null = string> {
  /** UUIDv7 of `at`: ids sort by time. */
  readonly id: string
  readonly at: number
  /** An {@link EventType}, or one of a feature. */
  readonly type: string
  readonly actor: Actor
  readonly userId: UserId
  /** `null` where the type has none. */
  readonly details: Readonly<Record<string, unknown>> | null
}

/** Optional where every property of the details is. */
export type DetailsArgument<Details> =
  Partial<Details> extends Details ? [details?: Details | null] : [details: Details]

/** @param at milliseconds since the epoch. */
export const newEvent = <Of extends EventType, UserId extends string | null>(
  type: Of,
  actor: Actor,
  userId: UserId,
  at: number,
  ...[details = null]: DetailsArgument<EventDetails<Of>>
): AuditEvent<UserId> => ({ id: newId(at), at, type, actor, userId, details })

export const serializeEvent = ({ id, at, type, actor, userId, details }: AuditEvent<string | null>) => ({
  id,
  at: new Date(at).toISOString(),
  type,
  actor: { type: actor.type, id: actor.id },
  userId,
  ip: actor.ip,
  details,
})

/** An event in JSON for its user: hides who acted for the operator, and from which address. */
export const serializeOwnEvent = (event: AuditEvent<string | null>) => {
  const { userId: _, ip, actor, ...own } = serializeEvent(event)
  const isOperator = actor.type === 'adminKey' || actor.type === 'administrator' || actor.type === 'system'
  return { ...own, actor: isOperator ? { ...actor, id: null } : actor, ip: isOperator ? null : ip }
}
