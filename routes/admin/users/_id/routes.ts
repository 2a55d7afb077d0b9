import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ADMIN_SCOPES_OF_FIELDS, FIELD_NAMES } from '#core/users/fields'
import { adminActor, adminKeyOf, clientOf } from '#routes/request-context'
import { expectedVersions, setETag, withHeaders } from '#routes/response-headers'
import {
  AdminUser,
  Email,
  ErrorOf,
  fieldProperties,
  IdParams,
  InputId,
  SessionList,
  SignedIn,
  Strict,
} from '#routes/schemas'
import { serializeAdminUser, serializeSession } from '#routes/serializers'
import { serializeSignedIn } from '#routes/signed-in'

const user: FastifyPluginAsyncTypebox = async app => {
  const { users, signIns, impersonation, sessions, passwordResets, emailAddresses } = app.services
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
      const versions = expectedVersions(request)
      const user = await users.update(params.id, body, adminActor(request), versions, adminKeyOf(request))
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

  app.delete(
    '/factors',
    {
      config: { scope: 'users:identity' },
      schema: {
        operationId: 'deleteUserFactors',
        summary: 'Remove the authenticator app, recovery codes and passkeys of a user who has lost them',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorOf('userNotFound') },
      },
    },
    async (request, reply) => {
      const { id } = request.validatedData.params
      await signIns.removeFactors(id, adminActor(request), adminKeyOf(request))
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/impersonate',
    {
      config: { scope: 'users:impersonate' },
      schema: {
        operationId: 'impersonateUser',
        summary: 'Impersonate a user for an hour; logged as an event, sets no cookie',
        params: IdParams,
        response: { 201: SignedIn, 403: ErrorOf('accountDisabled'), 404: ErrorOf('userNotFound') },
      },
    },
    async (request, reply) => {
      const { id } = request.validatedData.params
      const result = await impersonation.begin(
        id,
        adminKeyOf(request),
        adminActor(request),
        clientOf(request),
      )
      reply.code(201).header('cache-control', 'no-store')
      return serializeSignedIn(result)
    },
  )

  const mailResponses = {
    204: Type.Null(),
    403: ErrorOf('accountDisabled'),
    404: ErrorOf('userNotFound'),
    429: ErrorOf('tooManyRequests'),
  }

  app.post(
    '/password-reset',
    {
      config: { scope: 'users:write' },
      schema: {
        operationId: 'sendPasswordReset',
        summary: 'Mail a user a link to choose another password, or the first one',
        params: IdParams,
        response: mailResponses,
      },
    },
    async (request, reply) => {
      await passwordResets.send(request.validatedData.params.id, adminActor(request))
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/email-verification',
    {
      config: { scope: 'users:write' },
      schema: {
        operationId: 'sendEmailVerification',
        summary: 'Mail a user a link to confirm the e-mail, unless it is confirmed',
        params: IdParams,
        response: mailResponses,
      },
    },
    async (request, reply) => {
      await emailAddresses.sendVerificationTo(request.validatedData.params.id, adminActor(request))
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/sessions',
    {
      config: { scope: 'users:read' },
      schema: {
        operationId: 'listUserSessions',
        summary: 'List the sessions of a user, newest first, at most 1,000',
        params: IdParams,
        response: { 200: SessionList, 404: ErrorOf('userNotFound') },
      },
    },
    async (request, reply) => {
      const { id } = await users.get(request.validatedData.params.id)
      const found = await sessions.list(id)
      reply.header('cache-control', 'no-store')
      return { results: found.map(session => serializeSession(session, null)) }
    },
  )

  app.delete(
    '/sessions',
    {
      config: { scope: 'users:write' },
      schema: {
        operationId: 'deleteUserSessions',
        summary: 'End all sessions of a user',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorOf('userNotFound') },
      },
    },
    async (request, reply) => {
      await sessions.revokeAll(request.validatedData.params.id, adminActor(request))
      return reply.code(204).send(null)
    },
  )

  app.delete(
    '/sessions/:sessionId',
    {
      config: { scope: 'users:write' },
      schema: {
        operationId: 'deleteUserSession',
        summary: 'End a session of a user',
        params: Strict({ id: InputId, sessionId: InputId }),
        response: { 204: Type.Null(), 404: ErrorOf('sessionNotFound') },
      },
    },
    async (request, reply) => {
      const { id, sessionId } = request.validatedData.params
      await sessions.revokeOf(id, sessionId, adminActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default user
