import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { noStore } from '#feature/no-store'
import { ERRORS } from '#features/identities/definitions'
import { serializeIdentity } from '#features/identities/identities'
import { setFlow } from '#features/identities/routes/flow-cookie'
import {
  FlowSecret,
  Identity,
  IdentityList,
  ProviderId,
  StartedFlow,
} from '#features/identities/routes/schemas'
import { userActor } from '#routes/request-context'
import { withHeaders } from '#routes/response-headers'
import { EndOthers, ErrorOf, IdParams, Strict } from '#routes/schemas'

const identitiesOfAccount: FastifyPluginAsyncTypebox = async app => {
  const { identities, providerSignIns } = app.services
  app.addHook('preSerialization', noStore)

  app.post(
    '',
    {
      config: { reauthenticate: true },
      schema: {
        operationId: 'startIdentityLink',
        summary: 'Begin to link an account of a provider: get the URL to open',
        body: Strict({ provider: ProviderId }),
        response: {
          201: withHeaders(StartedFlow, 'Set-Cookie'),
          404: ErrorOf(ERRORS.providerNotFound),
        },
      },
    },
    async (request, reply) => {
      const { provider } = request.validatedData.body
      const started = await providerSignIns.start(provider, request.requirePrincipal())
      setFlow(reply, provider, started.flow).code(201)
      return started
    },
  )

  app.post(
    '/link',
    {
      config: { reauthenticate: true },
      schema: {
        operationId: 'linkIdentity',
        summary: 'Link the identity of a sign-in that found an account with its e-mail: this one',
        body: Strict({ provider: ProviderId, flow: FlowSecret }),
        response: {
          201: Identity,
          404: ErrorOf(ERRORS.providerNotFound),
          409: ErrorOf(ERRORS.identityTaken),
        },
      },
    },
    async (request, reply) => {
      const { provider, flow } = request.validatedData.body
      const owner = request.requirePrincipal()
      reply.code(201)
      return serializeIdentity(await providerSignIns.link(provider, flow, owner, userActor(request)))
    },
  )

  app.get(
    '',
    {
      schema: {
        operationId: 'listIdentities',
        summary: 'List your accounts of other providers, newest first',
        response: { 200: IdentityList },
      },
    },
    async ({ user }) => ({ results: (await identities.list(user.id)).map(serializeIdentity) }),
  )

  app.delete(
    '/:id',
    {
      config: { reauthenticate: true },
      schema: {
        operationId: 'deleteIdentity',
        summary: 'Unlink an account of a provider',
        params: IdParams,
        querystring: EndOthers,
        response: {
          204: Type.Null(),
          404: ErrorOf(ERRORS.identityNotFound),
          409: ErrorOf('lastSignInMethod'),
        },
      },
    },
    async (request, reply) => {
      const { params, query } = request.validatedData
      const owner = request.requirePrincipal()
      await identities.remove(owner, params.id, query.endOthers, userActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default identitiesOfAccount
