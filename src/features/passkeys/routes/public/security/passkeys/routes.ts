/** The form that removes a passkey. The script of the pages adds one. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { InputId, ProofFields, pageForm } from '#routes/schemas'

const passkeyPages: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages) return
  app.servePages()

  app.post('/remove', pageForm({ id: InputId, ...ProofFields }), (request, reply) => {
    const { id, ...proof } = request.validatedData.body
    const call = { method: 'DELETE', path: '/account/passkeys/:id', params: { id } } as const
    return app.submitForm(
      request,
      reply,
      { call, proof, repeat: { action: 'security/passkeys/remove', fields: { id } } },
      () => reply.redirectToPage('security', 'passkeyRemoved'),
    )
  })
}

export default passkeyPages
