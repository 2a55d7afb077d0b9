import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { serializeApiKey } from '#core/auth/api-key'
import { noStore } from '#feature/no-store'
import { ERRORS } from '#features/api-keys/api-keys'
import { adminActor } from '#routes/request-context'
import { ApiKeyList, ErrorOf, IdParams, InputId, Strict } from '#routes/schemas'

const apiKeysOfUser: FastifyPluginAsyncTypebox = async app => {
  const { apiKeys } = app.services
  app.addHook('preSerialization', noStore)

  app.get(
    '',
    {
      config: { scope: 'users:read' },
      schema: {
        operationId: 'listUserApiKeys',
        summary: 'List the API keys of a user, newest first',
        params: IdParams,
        response: { 200: ApiKeyList, 404: ErrorOf('userNotFound') },
      },
    },
    async ({ validatedData: { params } }) => ({
      results: (await apiKeys.list(params.id)).map(serializeApiKey),
    }),
  )

  app.delete(
    '/:keyId',
    {
      config: { scope: 'users:write' },
      schema: {
        operationId: 'deleteUserApiKey',
        summary: 'Revoke an API key of a user',
        params: Strict({ id: InputId, keyId: InputId }),
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.apiKeyNotFound) },
      },
    },
    async (request, reply) => {
      const { id, keyId } = request.validatedData.params
      await apiKeys.revoke(id, keyId, adminActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default apiKeysOfUser
