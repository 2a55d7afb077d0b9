import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { noStore } from '#feature/no-store'
import { ERRORS } from '#features/oauth/definitions'
import { serializeGrant } from '#features/oauth/grants'
import { userActor } from '#routes/request-context'
import { ErrorOf, IdParams } from '#routes/schemas'
import { GrantList } from '../../../schemas.ts'

const grantsOfAccount: FastifyPluginAsyncTypebox = async app => {
  const { oauth } = app.services
  if (oauth === null) return
  const { grants } = oauth
  app.addHook('preSerialization', noStore)

  app.get(
    '',
    {
      schema: {
        operationId: 'listGrants',
        summary: 'List the applications that have access to your account, the last used first',
        response: { 200: GrantList },
      },
    },
    async ({ user }) => ({ results: (await grants.list(user.id)).map(serializeGrant) }),
  )

  app.delete(
    '/:id',
    {
      config: { writeLimit: false },
      schema: {
        operationId: 'deleteGrant',
        summary: 'End the access of an application. Its tokens end at once',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.grantNotFound) },
      },
    },
    async (request, reply) => {
      await grants.revokeOwn(request.user.id, request.validatedData.params.id, userActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default grantsOfAccount
