import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ERRORS } from '#features/identities/definitions'
import { serializeIdentity } from '#features/identities/identities'
import { IdentityList } from '#features/identities/routes/schemas'
import { adminActor } from '#routes/request-context'
import { ErrorBody, ErrorOf, IdParams, InputId, Strict } from '#routes/schemas'

const identitiesOfUser: FastifyPluginAsyncTypebox = async app => {
  const { identities } = app.services

  app.get(
    '',
    {
      config: { scope: 'users:read' },
      schema: {
        operationId: 'listUserIdentities',
        summary: 'List the accounts of a user at other providers, newest first',
        params: IdParams,
        response: { 200: IdentityList, 404: ErrorOf('userNotFound'), 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const found = await identities.listOf(request.validatedData.params.id)
      reply.header('cache-control', 'no-store')
      return { results: found.map(serializeIdentity) }
    },
  )

  app.delete(
    '/:identityId',
    {
      config: { scope: 'users:identity' },
      schema: {
        operationId: 'deleteUserIdentity',
        summary: 'Unlink an account of a user at a provider',
        params: Strict({ id: InputId, identityId: InputId }),
        response: {
          204: Type.Null(),
          404: ErrorOf(ERRORS.identityNotFound),
          409: ErrorOf('lastSignInMethod'),
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const { id, identityId } = request.validatedData.params
      await identities.removeOf(id, identityId, adminActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default identitiesOfUser
