import type { EventFilter } from '#core/audit-log/listing'
import { NOW } from './fixtures.ts'

/** One of each shape: a user with many events, and a rare type. */
export const EVENT_FILTERS: readonly EventFilter[] = [{}, { userId: 'user 7' }].flatMap(user =>
  [{}, { type: 'user.changed' as const }].flatMap(type =>
    [{}, { after: NOW }, { before: NOW + 100 }, { after: NOW, before: NOW + 100 }].map(bounds => ({
      ...user,
      ...type,
      ...bounds,
    })),
  ),
)
