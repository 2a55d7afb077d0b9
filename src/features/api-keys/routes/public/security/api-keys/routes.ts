/** Pages of API keys. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyReply } from 'fastify'
import { apiKeyCreatedPage, newApiKeyPage } from '#features/api-keys/pages'
import type { ApiResponse } from '#http/pages/feature-pages'
import { FormText, InputId, ProofFields, pageForm } from '#routes/schemas'

/** Milliseconds. */
const DAY = 86_400_000

const apiKeyPages: FastifyPluginAsyncTypebox = async app => {
  const { userScopes, clock } = app.services
  if (!app.config.hasPages) return
  app.servePages()

  app.get('', { schema: { hide: true } }, async (request, reply) => {
    const account = await app.callApi(request, { method: 'GET', path: '/account' })
    if (account.status >= 400) return reply.sendFailure(account)
    return reply.sendPage(context => newApiKeyPage(context, { scopes: userScopes }))
  })

  const scopeFields = Object.fromEntries(
    Object.keys(userScopes).map(scope => [`scope:${scope}`, Type.Optional(FormText)]),
  )
  const Lifetime = Type.Unsafe<string>({ type: 'string', enum: ['never', '30', '90', '365'] })

  app.post(
    '',
    pageForm({ name: FormText, lifetime: Lifetime, ...ProofFields, ...scopeFields }),
    async (request, reply) => {
      const { name, lifetime, password, code, ...checked } = request.validatedData.body
      const chosen = Object.keys(userScopes).filter(scope => `scope:${scope}` in checked)
      const form = (errors: ApiResponse['errors']): Promise<FastifyReply> =>
        reply.sendPage(context => newApiKeyPage(context, { scopes: userScopes, name, chosen, errors }))
      // The API gives a key without scopes all of them. People choose.
      if (chosen.length === 0) {
        const errors = { scopes: ['is required'] }
        reply.relay({ status: 400, headers: {}, errors })
        return form(errors)
      }
      const expiresAt = lifetime === 'never' ? null : new Date(clock() + Number(lifetime) * DAY).toISOString()
      const body = { name, scopes: chosen, expiresAt }
      const fields = { name, lifetime, ...Object.fromEntries(chosen.map(scope => [`scope:${scope}`, 'on'])) }
      return app.submitForm(
        request,
        reply,
        {
          call: { method: 'POST', path: '/account/api-keys', body },
          proof: { password, code },
          repeat: { action: 'security/api-keys', fields },
          form,
        },
        ({ body: created }) =>
          reply.sendPage(context => apiKeyCreatedPage(context, created.apiKey.name, created.token)),
      )
    },
  )

  app.post('/revoke', pageForm({ id: InputId }), (request, reply) => {
    const params = { id: request.validatedData.body.id }
    const call = { method: 'DELETE', path: '/account/api-keys/:id', params } as const
    return app.submitForm(request, reply, { call }, () => reply.redirectToPage('security', 'apiKeyRevoked'))
  })
}

export default apiKeyPages
