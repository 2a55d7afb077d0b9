/** The page to set the PIN of the account. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { FormText, ProofFields, pageForm } from '#routes/schemas'
import { setPinPage } from '../../../../pages.ts'

const routes: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages) return
  app.servePages()

  app.get('', { schema: { hide: true } }, async (request, reply) => {
    const response = await app.callApi(request, { method: 'GET', path: '/account' })
    if (response.status >= 400) return reply.sendFailure(response)
    return reply.sendPage(context => setPinPage(context))
  })

  app.post('', pageForm({ pin: FormText, ...ProofFields }), async (request, reply) => {
    const { pin, ...proof } = request.validatedData.body
    const call = { method: 'PUT', path: '/account/pin', body: { pin } } as const
    const repeat = { action: 'security/pin', fields: { pin } }
    const form = (errors: Readonly<Record<string, readonly string[]>>) =>
      reply.sendPage(context => setPinPage(context, errors))
    return app.submitForm(request, reply, { call, proof, repeat, form }, () =>
      reply.redirectToPage('security', 'pinSet'),
    )
  })
}

export default routes
