/** The button that ends the access of an application, on the security page. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { InputId, pageForm } from '#routes/schemas'

const grantPages: FastifyPluginAsyncTypebox = async app => {
  if (app.services.oauth === null || !app.config.hasPages) return
  app.servePages()

  app.post('/end', pageForm({ id: InputId }), (request, reply) => {
    const params = { id: request.validatedData.body.id }
    const call = { method: 'DELETE', path: '/account/grants/:id', params } as const
    return app.submitForm(request, reply, { call }, () => reply.redirectToPage('security', 'grantEnded'))
  })
}

export default grantPages
