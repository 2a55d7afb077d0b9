import type { FastifyReply } from 'fastify'

/**
 * Aborted when the client goes before its answer, so that nothing is computed for nobody. Fastify's `request.signal` is
 * not that: it is aborted as soon as a body has been read (fastify#6725).
 */
export const disconnectSignal = ({ raw }: FastifyReply): AbortSignal => {
  const controller = new AbortController()
  const { socket } = raw.req
  const abort = (): void => controller.abort()
  // Nearly always a client that has gone. One that has only ended its side has its response if there is no line to wait in.
  socket.once('end', abort)
  raw.once('close', () => {
    socket.off('end', abort)
    if (!raw.writableFinished) abort()
  })
  return controller.signal
}
