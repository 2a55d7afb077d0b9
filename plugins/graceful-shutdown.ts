/** Draining (DESIGN §8): while an instance stops it is not ready, and every answer asks its client to connect anew. */
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { closeAfter, isLatest } from '../src/http/connection.ts'

declare module 'fastify' {
  interface FastifyInstance {
    readonly isDraining: () => boolean
    /** Aborted when the instance begins to stop: for what would go on for longer than a stop may take. */
    readonly drainSignal: AbortSignal
    /** Serves on for `DRAIN_DELAY`, so that load balancers and clients that keep connections open notice. */
    readonly drain: () => Promise<void>
  }
}

const drain = async (app: FastifyInstance): Promise<void> => {
  const draining = new AbortController()
  const { signal } = draining
  app.decorate('isDraining', () => signal.aborted)
  app.decorate('drainSignal', signal)
  app.decorate('drain', async () => {
    draining.abort()
    await delay(app.config.drainDelay)
  })
  // When an answer is sent, not when its request comes: those in flight when the drain begins are told too.
  app.addHook('onSend', function announceDrain(_request, reply, _payload, done) {
    // With pipelining, the last one alone: what came behind another one is being processed, and has a response too.
    if (signal.aborted && isLatest(reply.raw)) {
      reply.header('connection', 'close')
      closeAfter(reply.raw)
    }
    done()
  })
}

export default fp(drain, { name: 'graceful-shutdown', dependencies: ['error-handler'] })
