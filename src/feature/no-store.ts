import type { preSerializationAsyncHookHandler } from 'fastify'

/**
 * A hook for routes whose responses belong to one user or administrator: no cache may keep them.
 *
 *     app.addHook('preSerialization', noStore)
 *
 * Errors are sent as text, so it does not run for them.
 */
export const noStore: preSerializationAsyncHookHandler = async (_request, reply, payload) => {
  reply.header('cache-control', 'no-store')
  return payload
}
