import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { OWN_FIELDS } from '#core/users/fields'
import { userActor } from '../../request-context.ts'
import { expectedVersions, setETag, withHeaders } from '../../response-headers.ts'
import { Account, ErrorOf, fieldProperties, Strict } from '../../schemas.ts'
import { sendAccount, serializeAccount } from '../../serializers.ts'

const account: FastifyPluginAsyncTypebox = async app => {
  const { users } = app.services
  const Changes = Strict(fieldProperties(app.config.metadataSchemas, OWN_FIELDS), { minProperties: 1 })

  app.get(
    '',
    {
      config: { scope: 'account:read' },
      schema: {
        summary: 'Get your account',
        response: { 200: withHeaders(Account, 'ETag') },
      },
    },
    // The hot path (docs/design.md, "Hot path"): synchronous, so that no promise is created.
    (request, reply) => {
      sendAccount(reply, request.requirePrincipal().cachedUser)
    },
  )

  app.put(
    '',
    {
      config: { scope: 'account:write' },
      schema: {
        summary:
          'Change your names, your language and your metadata, which is replaced as a whole; If-Match makes the change conditional',
        body: Changes,
        response: { 200: withHeaders(Account, 'ETag'), 412: ErrorOf('versionChanged') },
      },
    },
    async (request, reply) => {
      const updated = await users.updateOwn(
        request.user.id,
        request.requirePrincipal().credentialId,
        request.validatedData.body,
        userActor(request),
        expectedVersions(request),
      )
      setETag(reply, updated).header('cache-control', 'no-store')
      return serializeAccount(updated)
    },
  )

  app.delete(
    '',
    {
      config: { reauthenticate: true, writeLimit: false },
      schema: {
        summary: 'Remove your account and all personal data',
        response: { 204: withHeaders(Type.Null(), 'Set-Cookie') },
      },
    },
    async (request, reply) => {
      await users.removeOwn(request.requirePrincipal(), userActor(request))
      return reply.clearAccessToken().code(204).send(null)
    },
  )
}

export default account
