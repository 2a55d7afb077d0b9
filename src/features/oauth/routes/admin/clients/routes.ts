import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { noStore } from '#feature/no-store'
import { newClientMetadata, serializeClient } from '#features/oauth/client'
import { ERRORS } from '#features/oauth/definitions'
import { adminActor, adminKeyOf } from '#routes/request-context'
import { linkToNext } from '#routes/response-headers'
import { ErrorOf, IdParams, pageProperties, Strict } from '#routes/schemas'
import {
  ChangedClient,
  Client,
  ClientPage,
  CreatedClient,
  NewClient,
  RotatedClientSecret,
} from '../../schemas.ts'

const reading = { scope: 'clients:read' } as const
const writing = { scope: 'clients:write' } as const
/** Clients that users are not asked about, or that need no PKCE. */
const trusting = {
  scope: 'clients:write',
  fieldScopes: { firstParty: 'clients:trust', requirePkce: 'clients:trust' },
} as const

const clientRoutes: FastifyPluginAsyncTypebox = async app => {
  const { clients, adminScopes } = app.services
  if (app.config.featureSettings.OAUTH === 'off') return
  const declared = Object.keys(adminScopes)
  app.addHook('preSerialization', noStore)

  app.post(
    '',
    {
      config: trusting,
      schema: {
        operationId: 'createOAuthClient',
        summary:
          'Register a client of the authorization server. The response shows its secret for the only time',
        body: NewClient(declared),
        response: { 201: CreatedClient, 409: ErrorOf(ERRORS.tooManyClients) },
      },
    },
    async (request, reply) => {
      const metadata = newClientMetadata(request.validatedData.body)
      const { scopes } = adminKeyOf(request)
      const { client, secret } = await clients.create(metadata, scopes, adminActor(request))
      reply.code(201)
      return { ...serializeClient(client), secret }
    },
  )

  app.get(
    '',
    {
      config: reading,
      schema: {
        operationId: 'listOAuthClients',
        summary: 'List the clients of the authorization server, oldest first',
        querystring: Strict(pageProperties),
        response: { 200: ClientPage },
      },
    },
    async (request, reply) => {
      const { limit, cursor } = request.validatedData.query
      const { results, nextCursor } = await clients.list(limit, cursor)
      linkToNext(request, reply, nextCursor)
      return { results: results.map(serializeClient), nextCursor }
    },
  )

  app.get(
    '/:id',
    {
      config: reading,
      schema: {
        operationId: 'getOAuthClient',
        summary: 'Get a client of the authorization server',
        params: IdParams,
        response: { 200: Client, 404: ErrorOf(ERRORS.clientNotFound) },
      },
    },
    async request => serializeClient(await clients.get(request.validatedData.params.id)),
  )

  app.put(
    '/:id',
    {
      config: trusting,
      schema: {
        operationId: 'updateOAuthClient',
        summary:
          'Change a client. What is not given stays; tokens lose at once what the client may not do any more',
        params: IdParams,
        body: ChangedClient(declared),
        response: {
          200: Client,
          404: ErrorOf(ERRORS.clientNotFound),
          409: ErrorOf(ERRORS.clientChanged),
        },
      },
    },
    async request => {
      const { params, body } = request.validatedData
      const { scopes } = adminKeyOf(request)
      return serializeClient(await clients.change(params.id, body, scopes, adminActor(request)))
    },
  )

  app.delete(
    '/:id',
    {
      config: writing,
      schema: {
        operationId: 'deleteOAuthClient',
        summary: 'Delete a client. Its tokens and grants end at once',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.clientNotFound) },
      },
    },
    async (request, reply) => {
      await clients.remove(request.validatedData.params.id, adminActor(request))
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/:id/rotate-secret',
    {
      config: writing,
      schema: {
        operationId: 'rotateClientSecret',
        summary: 'Get a new secret. The current one is valid for another day',
        params: IdParams,
        response: {
          200: RotatedClientSecret,
          404: ErrorOf(ERRORS.clientNotFound),
          409: ErrorOf(ERRORS.clientWithoutSecret),
        },
      },
    },
    async request => {
      const { secret, formerExpiresAt } = await clients.rotateSecret(
        request.validatedData.params.id,
        adminActor(request),
      )
      return { secret, formerSecretExpiresAt: new Date(formerExpiresAt).toISOString() }
    },
  )
}

export default clientRoutes
