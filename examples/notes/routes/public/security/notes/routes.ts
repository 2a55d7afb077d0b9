/** The page of notes. */
import type { FastifyPluginAsync } from 'fastify'
import { InputId, pageForm } from '#routes/schemas'
import { notesPage } from '../../../../pages.ts'

const routes: FastifyPluginAsync = async app => {
  if (!app.config.hasPages) return
  app.servePages()

  app.get('', { schema: { hide: true } }, async (request, reply) => {
    const response = await app.callApi(request, { method: 'GET', path: '/notes?limit=100' })
    if (response.status >= 400) return reply.sendFailure(response)
    return reply.sendPage(context => notesPage(context, response.body.results))
  })

  app.post<{ Body: { id: string } }>('/remove', pageForm({ id: InputId }), (request, reply) => {
    const params = { id: request.validatedData.body.id }
    const call = { method: 'DELETE', path: '/notes/:id', params } as const
    return app.submitForm(request, reply, { call }, () => reply.redirectToPage('security', 'noteRemoved'))
  })
}

export default routes
