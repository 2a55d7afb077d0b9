import { Type } from '@sinclair/typebox'
import {
  ACTOR_TYPES,
  type Actor,
  EVENT_TYPES,
  type EventDetails,
  type EventType,
} from '../src/audit-log/event.ts'
import { Id, Moment, NullableText } from './schemas.ts'

/** A line of the audit log. */
export const AuditEvent = Type.Object(
  {
    id: Id,
    at: Moment,
    type: Type.Unsafe<EventType>({ type: 'string', enum: [...EVENT_TYPES] }),
    actor: Type.Object({
      type: Type.Unsafe<Actor['type']>({ type: 'string', enum: [...ACTOR_TYPES] }),
      id: NullableText,
    }),
    userId: Id,
    ip: NullableText,
    details: Type.Unsafe<EventDetails | null>({
      type: ['object', 'null'],
      properties: {
        fields: { type: 'array', items: { type: 'string' }, description: 'What of the user has changed' },
        session: { type: 'string', description: 'The session that is meant' },
        except: { type: 'string', description: 'The session that is not meant' },
      },
    }),
  },
  { title: 'AuditEvent' },
)
