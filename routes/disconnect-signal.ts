import type { FastifyReply } from 'fastify'

/**
 * Aborted when the client goes before its answer, so that nothing is computed for nobody. Fastify's `request.signal` is
 * not that: it is aborted as soon as a body has been read (fastify#6725).
 */
export const disconnectSignal = ({ raw }: FastifyReply): AbortSignal => {
  const controller = new AbortController()
  raw.once('close', () => {
    if (!raw.writableFinished) controller.abort()
  })
  return controller.signal
}
