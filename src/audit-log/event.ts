import { newId } from '../ids.ts'

export const ACTOR_TYPES = ['user', 'adminKey', 'anonymous', 'system'] as const

/** Who does something: a user, whoever holds an admin key, somebody who is not known, or the service's operator. */
export interface Actor {
  readonly type: (typeof ACTOR_TYPES)[number]
  /** The user's id, or the key's (see `AdminKeys`). */
  readonly id: string | null
  /** The address that the request came from. */
  readonly ip: string | null
}

export const anonymous = (ip: string | null): Actor => ({ type: 'anonymous', id: null, ip })

/** The operator, on the command line. */
export const OPERATOR: Actor = { type: 'system', id: null, ip: null }

export const EVENT_TYPES = [
  'user.created',
  'user.signed-up',
  'user.sign-up-repeated',
  'user.signed-in',
  'user.impersonated',
  'user.changed',
  'user.disabled',
  'user.enabled',
  'user.deleted',
  'session.sign-in-throttled',
  'session.ended',
  'sessions.ended',
  'password.changed',
  'password.reset-requested',
  'password.reset',
  'email.verification-requested',
  'email.verified',
  'email.change-requested',
  'email.changed',
] as const

export type EventType = (typeof EVENT_TYPES)[number]

/** What of the user has changed; which session is meant, or is not. */
export interface EventDetails {
  readonly fields?: readonly string[]
  readonly session?: string
  readonly except?: string
}

/**
 * One line of the audit log: who did what, to whom, from where and when. Nothing in it is secret, and nothing personal but
 * the address, which goes when the account does.
 */
export interface AuditEvent {
  /** UUIDv7 of its timestamp: ids sort by time. */
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly type: EventType
  readonly actor: Actor
  readonly userId: string
  readonly details: EventDetails | null
}

/** The event, a millisecond after `last` where it would not be newer than that one. */
export const eventAfter = (
  event: AuditEvent,
  last: Pick<AuditEvent, 'id' | 'at'> | undefined,
): AuditEvent => {
  if (last === undefined || last.id <= event.id) return event
  const at = last.at + 1
  return { ...event, id: newId(at), at }
}

/** @param at milliseconds since the epoch. */
export const newEvent = (
  type: EventType,
  actor: Actor,
  userId: string,
  at: number,
  details: AuditEvent['details'] = null,
): AuditEvent => ({ id: newId(at), at, type, actor, userId, details })
