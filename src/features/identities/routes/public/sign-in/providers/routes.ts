/** The button of a provider on the sign-in page. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { continuePage } from '#features/identities/pages'
import { ProviderParams } from '#features/identities/routes/schemas'
import { returnToOf } from '#routes/request-context'
import { pageForm } from '#routes/schemas'

const startPages: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages) return
  const { providerSignIns } = app.services
  app.servePages()

  app.post('/:id', { schema: { ...pageForm({}).schema, params: ProviderParams } }, async (request, reply) => {
    const { id } = request.validatedData.params
    const path = '/account/sign-in/providers/:id'
    const body = returnToOf(request)
    const response = await app.callApi(request, { method: 'POST', path, params: { id }, body })
    if (response.status >= 400) return reply.sendFailure(response)
    const { authorizationUrl } = response.body
    return reply
      .relay(response)
      .sendPage(context => continuePage(context, providerSignIns.find(id).name, authorizationUrl))
  })
}

export default startPages
