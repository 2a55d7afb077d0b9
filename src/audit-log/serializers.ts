/** Events as JSON, for HTTP and the command line. Timestamps are ISO 8601 in UTC. */
import type { AuditEvent } from './event.ts'

export const serializeEvent = ({ id, at, type, actor, userId, details }: AuditEvent<string | null>) => ({
  id,
  at: new Date(at).toISOString(),
  type,
  actor: { type: actor.type, id: actor.id },
  userId,
  ip: actor.ip,
  details,
})
