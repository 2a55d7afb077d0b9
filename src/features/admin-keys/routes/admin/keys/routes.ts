import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { serializeAdminKey } from '#core/auth/admin-key'
import { noStore } from '#feature/no-store'
import { ERRORS, serializeCreatedAdminKey } from '#features/admin-keys/admin-keys'
import { adminActor, adminKeyOf, newKeyOptionsOf } from '#routes/request-context'
import { AdminKeyList, CreatedAdminKey, ErrorOf, IdParams, NewAdminKey } from '#routes/schemas'

const keys: FastifyPluginAsyncTypebox = async app => {
  const { adminKeys, adminScopes } = app.services
  app.addHook('preSerialization', noStore)

  app.post(
    '',
    {
      config: { scope: 'keys:write' },
      schema: {
        summary: 'Create an admin key with scopes. The response shows it for the only time',
        body: NewAdminKey(adminScopes),
        response: { 201: CreatedAdminKey, 409: ErrorOf(ERRORS.tooManyAdminKeys) },
      },
    },
    async (request, reply) => {
      const created = await adminKeys.create(
        newKeyOptionsOf(request.validatedData.body, adminScopes),
        adminKeyOf(request),
        adminActor(request),
      )
      reply.code(201)
      return serializeCreatedAdminKey(created)
    },
  )

  app.get(
    '',
    {
      config: { scope: 'keys:write' },
      schema: {
        summary: 'List all admin keys, newest first; without those of the configuration',
        response: { 200: AdminKeyList },
      },
    },
    async () => ({ results: (await adminKeys.list()).map(serializeAdminKey) }),
  )

  app.delete(
    '/:id',
    {
      config: { scope: 'keys:write' },
      schema: {
        summary:
          'Revoke an admin key whose scopes your key has; ends the impersonated sessions that it opened',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.adminKeyNotFound) },
      },
    },
    async (request, reply) => {
      await adminKeys.revoke(request.validatedData.params.id, adminKeyOf(request), adminActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default keys
