/** The page to ask for a link. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { magicLinkSentPage, requestMagicLinkPage } from '#features/email-codes/pages'
import { FormText, pageForm } from '#routes/schemas'

const requestMagicLink: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages || app.services.magicLinks === null) return
  app.servePages()

  app.get('', { schema: { hide: true } }, (_request, reply) =>
    reply.sendPage(context => requestMagicLinkPage(context)),
  )

  app.post('', pageForm({ email: FormText }), async (request, reply) => {
    const { body } = request.validatedData
    const response = await app.callApi(request, { method: 'POST', path: '/account/magic-link', body })
    return reply
      .relay(response)
      .sendPage(context =>
        response.status < 400
          ? magicLinkSentPage(context)
          : requestMagicLinkPage(context, { ...body, errors: response.errors }),
      )
  })
}

export default requestMagicLink
