import type { FastifyReply } from 'fastify'

/**
 * Aborted when the client disconnects before the response, so that queued work can be dropped. Fastify's `request.signal` does not
 * fit: it is aborted as soon as the body has been read (fastify#6725).
 */
export const disconnectSignal = ({ raw }: FastifyReply): AbortSignal => {
  const controller = new AbortController()
  const { socket } = raw.req
  const abort = (): void => controller.abort()
  // Almost always a disconnect. A client that only half-closed the connection still gets a response that needs no queue.
  socket.once('end', abort)
  raw.once('close', () => {
    socket.off('end', abort)
    if (!raw.writableFinished) abort()
  })
  return controller.signal
}
