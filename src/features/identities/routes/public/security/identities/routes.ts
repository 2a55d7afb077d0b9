/** The forms of the security page that link and unlink identities. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { continuePage } from '#features/identities/pages'
import { FormText, InputId, ProofFields, pageForm } from '#routes/schemas'

const identityPages: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages) return
  const { providerSignIns } = app.services
  app.servePages()

  app.post('/link', pageForm({ id: FormText, ...ProofFields }), (request, reply) => {
    const { id: provider, ...proof } = request.validatedData.body
    const call = { method: 'POST', path: '/account/identities', body: { provider } } as const
    const repeat = { action: 'security/identities/link', fields: { id: provider } }
    return app.submitForm(request, reply, { call, proof, repeat }, response =>
      reply
        .relay(response)
        .sendPage(context =>
          continuePage(context, providerSignIns.find(provider).name, response.body.authorizationUrl),
        ),
    )
  })

  app.post('/remove', pageForm({ id: InputId, ...ProofFields }), (request, reply) => {
    const { id, ...proof } = request.validatedData.body
    const call = { method: 'DELETE', path: '/account/identities/:id', params: { id } } as const
    const repeat = { action: 'security/identities/remove', fields: { id } }
    return app.submitForm(request, reply, { call, proof, repeat }, () =>
      reply.redirectToPage('security', 'identityRemoved'),
    )
  })
}

export default identityPages
