import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { noStore } from '#feature/no-store'
import { ERRORS } from '#features/identities/definitions'
import { serializeIdentity } from '#features/identities/identities'
import { IdentityList } from '#features/identities/routes/schemas'
import { adminActor } from '#routes/request-context'
import { ErrorOf, IdParams, InputId, Strict } from '#routes/schemas'

const identitiesOfUser: FastifyPluginAsyncTypebox = async app => {
  const { identities } = app.services
  app.addHook('preSerialization', noStore)

  app.get(
    '',
    {
      config: { scope: 'users:read' },
      schema: {
        operationId: 'listUserIdentities',
        summary: 'List the accounts of a user at other providers, newest first',
        params: IdParams,
        response: { 200: IdentityList, 404: ErrorOf('userNotFound') },
      },
    },
    async ({ validatedData: { params } }) => ({
      results: (await identities.listOf(params.id)).map(serializeIdentity),
    }),
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
