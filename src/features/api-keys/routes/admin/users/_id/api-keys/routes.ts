import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { serializeApiKey } from '#core/auth/api-key'
import { ERRORS } from '#features/api-keys/api-keys'
import { adminActor } from '#routes/request-context'
import { ApiKeyList, ErrorBody, ErrorOf, IdParams, InputId, Strict } from '#routes/schemas'

const apiKeysOfUser: FastifyPluginAsyncTypebox = async app => {
  const { apiKeys } = app.services

  app.get(
    '',
    {
      config: { scope: 'users:read' },
      schema: {
        operationId: 'listUserApiKeys',
        summary: 'List the API keys of a user, newest first',
        params: IdParams,
        response: { 200: ApiKeyList, 404: ErrorOf('userNotFound'), 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const found = await apiKeys.list(request.validatedData.params.id)
      reply.header('cache-control', 'no-store')
      return { results: found.map(serializeApiKey) }
    },
  )

  app.delete(
    '/:keyId',
    {
      config: { scope: 'users:write' },
      schema: {
        operationId: 'deleteUserApiKey',
        summary: 'Revoke an API key of a user',
        params: Strict({ id: InputId, keyId: InputId }),
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.apiKeyNotFound), 503: ErrorBody },
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
