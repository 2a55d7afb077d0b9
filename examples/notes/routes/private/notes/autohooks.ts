/** An administrator who acts as the user may read notes, but not add any. */
import type { FastifyInstance } from 'fastify'
import { refuseImpersonation } from '#routes/request-context'

export default async function notesHooks(app: FastifyInstance): Promise<void> {
  app.addHook('preHandler', async request => {
    if (request.method !== 'GET' && request.method !== 'HEAD') refuseImpersonation(request)
  })
}
