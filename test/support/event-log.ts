/** The audit log of an app, in the order in which events became visible. */
import type { FastifyInstance } from 'fastify'
import { until } from './until.ts'

/** Milliseconds. */
const WAIT = 20_000

/** Every event up to the newest one. On PostgreSQL an event waits for transactions that began before its own. */
export const readLog = async ({ services }: FastifyInstance) => {
  const { events: log } = services.storage
  const [newest] = await log.list({ filter: {}, beforeId: null, limit: 1 })
  return until(
    async () => (await log.follow({ filter: {}, after: null, limit: 10_000 })).events,
    events => newest === undefined || events.some(({ id }) => id === newest.id),
    WAIT,
  )
}
