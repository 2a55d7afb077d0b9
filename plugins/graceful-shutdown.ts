/**
 * Graceful shutdown (docs/design.md, "Configuration"): while an instance drains, it is not ready, and every response closes its connection.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { closeAfter, isLatest } from '#http/connection'

declare module 'fastify' {
  interface FastifyInstance {
    readonly isDraining: () => boolean
    /** Aborted when the instance starts to drain, for work that could take longer than the shutdown. */
    readonly drainSignal: AbortSignal
    /** Continues to serve for `DRAIN_DELAY`, so that load balancers and clients with open connections notice. */
    readonly drain: () => Promise<void>
  }
}

const gracefulShutdown = async (app: FastifyInstance): Promise<void> => {
  const controller = new AbortController()
  const { signal } = controller
  app.decorate('isDraining', () => signal.aborted)
  app.decorate('drainSignal', signal)
  app.decorate('drain', async () => {
    controller.abort()
    await delay(app.config.drainDelay)
  })
  // They would keep the instance waiting. Clients connect again, to another one.
  signal.addEventListener('abort', () => app.services.eventStreams.close())
  // In a host application, which closes without a drain.
  app.addHook('preClose', async () => controller.abort())
  // On send, not on request, so that responses in flight at the start of the drain have the header too.
  app.addHook('onSend', function announceDrain(_request, reply, _payload, done) {
    // With pipelining only the latest response: later requests are being processed and need their responses.
    if (signal.aborted && isLatest(reply.raw)) {
      reply.header('connection', 'close')
      closeAfter(reply.raw)
    }
    done()
  })
}

export default fp(gracefulShutdown, { name: 'graceful-shutdown', dependencies: ['error-handler'] })
