import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { serializeApiKey } from '#core/auth/api-key'
import { noStore } from '#feature/no-store'
import { ERRORS } from '#features/api-keys/api-keys'
import { newKeyOptionsOf, userActor } from '#routes/request-context'
import {
  ApiKeyList,
  CreatedApiKey,
  ErrorOf,
  ExpiresAt,
  IdParams,
  KeyName,
  Scopes,
  Strict,
} from '#routes/schemas'

const apiKeysOfAccount: FastifyPluginAsyncTypebox = async app => {
  const { apiKeys, userScopes } = app.services
  app.addHook('preSerialization', noStore)

  const Request = Strict({
    name: KeyName,
    scopes: Type.Optional(Scopes(userScopes, 'By default all')),
    expiresAt: Type.Optional(ExpiresAt),
  })

  app.post(
    '',
    {
      config: { reauthenticate: true },
      schema: {
        operationId: 'createApiKey',
        summary: 'Create an API key: a token for your programs. The response shows it for the only time',
        body: Request,
        response: { 201: CreatedApiKey, 409: ErrorOf(ERRORS.tooManyApiKeys) },
      },
    },
    async (request, reply) => {
      const { name, scopes = Object.keys(userScopes), expiresAt } = request.validatedData.body
      const { token, apiKey } = await apiKeys.create(
        request.requirePrincipal(),
        newKeyOptionsOf({ name, scopes, expiresAt }, userScopes),
        userActor(request),
      )
      reply.code(201)
      return { token, apiKey: serializeApiKey(apiKey) }
    },
  )

  app.get(
    '',
    {
      schema: {
        operationId: 'listApiKeys',
        summary: 'List your API keys, newest first',
        response: { 200: ApiKeyList },
      },
    },
    async ({ user }) => ({ results: (await apiKeys.listOwn(user.id)).map(serializeApiKey) }),
  )

  app.delete(
    '/:id',
    {
      config: { writeLimit: false },
      schema: {
        operationId: 'deleteApiKey',
        summary: 'Revoke an API key',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.apiKeyNotFound) },
      },
    },
    async (request, reply) => {
      await apiKeys.revokeOwn(request.user.id, request.validatedData.params.id, userActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default apiKeysOfAccount
