import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { noStore } from '#feature/no-store'
import { AdminProviderList } from '#features/identities/routes/schemas'

const providers: FastifyPluginAsyncTypebox = async app => {
  const { providerSignIns } = app.services
  app.addHook('preSerialization', noStore)

  app.get(
    '',
    {
      config: { scope: 'settings:read' },
      schema: {
        operationId: 'listConfiguredProviders',
        summary: 'List the providers of OIDC_PROVIDERS, without their secrets',
        response: { 200: AdminProviderList },
      },
    },
    async () => ({
      results: providerSignIns.providers.map(provider => ({
        id: provider.id,
        name: provider.name,
        type: provider.type,
        issuer: provider.issuer,
        scopes: [...provider.scopes],
        signUp: provider.signUp,
        redirectUri: providerSignIns.redirectUriOf(provider),
      })),
    }),
  )
}

export default providers
