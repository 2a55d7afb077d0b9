import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ADMIN_SCOPES_OF_FIELDS, FIELD_NAMES } from '#core/users/fields'
import { adminActor } from '#routes/request-context'
import { expectedVersions, setETag, withHeaders } from '#routes/response-headers'
import { AdminUser, Email, ErrorOf, fieldProperties, IdParams, Strict } from '#routes/schemas'
import { serializeAdminUser } from '#routes/serializers'

const user: FastifyPluginAsyncTypebox = async app => {
  const { users } = app.services
  const Changes = Strict(
    {
      email: Type.Optional(Email),
      disabled: Type.Optional(Type.Boolean()),
      emailVerified: Type.Optional(Type.Boolean({ examples: [true] })),
      ...fieldProperties(app.config.metadataSchemas, FIELD_NAMES),
    },
    { minProperties: 1 },
  )

  app.get(
    '',
    {
      config: { scope: 'users:read' },
      schema: {
        operationId: 'getUser',
        summary: 'Get a user; the ETag covers neither the last request nor identities',
        params: IdParams,
        response: { 200: withHeaders(AdminUser, 'ETag'), 404: ErrorOf('userNotFound') },
      },
    },
    async (request, reply) => {
      const user = await users.get(request.validatedData.params.id)
      setETag(reply, user).header('cache-control', 'no-store')
      return serializeAdminUser(user)
    },
  )

  app.put(
    '',
    {
      config: {
        scope: 'users:write',
        fieldScopes: { email: 'users:identity', emailVerified: 'users:identity', ...ADMIN_SCOPES_OF_FIELDS },
      },
      schema: {
        operationId: 'updateUser',
        summary: 'Change a user; disabling ends all sessions; If-Match makes the change conditional',
        params: IdParams,
        body: Changes,
        response: {
          200: withHeaders(AdminUser, 'ETag'),
          404: ErrorOf('userNotFound'),
          409: ErrorOf('emailTaken'),
          412: ErrorOf('versionChanged'),
        },
      },
    },
    async (request, reply) => {
      const { params, body } = request.validatedData
      const user = await users.update(params.id, body, adminActor(request), expectedVersions(request))
      setETag(reply, user).header('cache-control', 'no-store')
      return serializeAdminUser(user)
    },
  )

  app.delete(
    '',
    {
      config: { scope: 'users:delete' },
      schema: {
        operationId: 'deleteUser',
        summary: 'Remove a user and all their data',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorOf('userNotFound') },
      },
    },
    async (request, reply) => {
      await users.remove(request.validatedData.params.id, adminActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default user
